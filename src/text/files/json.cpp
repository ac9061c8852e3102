#include "text/files/json.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/arena.h"
#include "base/error.h"
#include "base/keyed_hash.h"
#include "text/files/json_scanner.h"
#include "text/unicode/unicode.h"

namespace linnet {
namespace {

constexpr const char* kind_names[] = {"null", "a boolean", "a number", "a string", "an array", "an object"};
constexpr std::size_t depth = 100;

/// The first key that stands before it too, or as many as there are. By an open-addressed table, of which the
/// places are fetched ahead: for 200 000 keys it does not fit the second-level cache. (std::unordered_set
/// takes 20 ms for them.)
std::size_t first_repeated(const std::vector<std::string_view>& keys) {
    struct Slot {
        std::uint32_t check = 0;  // of the hash, so that few keys are compared
        std::uint32_t key = 0;    // from 1; 0: free
    };
    std::vector<Slot, LargePageAllocator<Slot>> slots(std::bit_ceil(keys.size() * 2 + 2));
    std::vector<std::uint64_t> hashes;
    hashes.reserve(keys.size());
    for (std::string_view key : keys) hashes.push_back(keyed_hash(key));
    const std::size_t mask = slots.size() - 1, ahead = 16;
    for (std::size_t k = 0; k < keys.size(); k++) {
        if (k + ahead < keys.size()) __builtin_prefetch(&slots[hashes[k + ahead] & mask]);
        const auto check = static_cast<std::uint32_t>(hashes[k] >> 32);
        std::size_t i = hashes[k] & mask;
        for (; slots[i].key; i = (i + 1) & mask)
            if (slots[i].check == check && keys[slots[i].key - 1] == keys[k]) return k;
        slots[i] = {check, static_cast<std::uint32_t>(k + 1)};
    }
    return keys.size();
}

}  // namespace

Json::Json(std::string_view text, std::string file) : file_(std::move(file)) {
    if (text.size() > UINT32_MAX)
        fail_input(file_, "", "at most 4 GiB of JSON", std::to_string(text.size()) + " bytes");
    simdjson::error_code code = parser_.allocate(std::max<std::size_t>(text.size(), 64), depth);
    if (!code) code = parser_.parse(text.data(), text.size()).get(root_);
    if (code == simdjson::MEMALLOC) throw std::bad_alloc();
    if (code || !root_.is_object()) fail_parsing(text, code);
    check_keys(root_, {0, 0, {}});
    places_.clear();
}

void Json::fail_parsing(std::string_view text, simdjson::error_code code) const {
    JsonFault fault;
    if (JsonScanner(depth, true).check(text, fault))
        fail_input(file_, "", "JSON", simdjson::error_message(code));
    const std::string_view before = text.substr(0, fault.at);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t start = before.rfind('\n');
    const std::size_t column = fault.at - (start == std::string_view::npos ? 0 : start + 1) + 1;
    fail_input(file_, "line " + std::to_string(line) + ", column " + std::to_string(column), fault.expected,
               fault.got);
}

void Json::check_keys(simdjson::dom::element element, const Value::Place& place) const {
    std::uint32_t parent = 0;  // named when the first part of a part is looked into: most have none
    auto check_part = [&](simdjson::dom::element part, std::uint32_t index, std::string_view key) {
        if (!part.is_array() && !part.is_object()) return;
        if (parent == 0) parent = keep(place);
        check_keys(part, {parent, index, key});
    };
    if (element.is_array()) {
        std::uint32_t index = 0;
        for (simdjson::dom::element part : simdjson::dom::array(element)) check_part(part, index++, {});
        return;
    }
    const simdjson::dom::object object(element);
    auto fail = [&](std::string_view expected, std::string_view got) {
        Value(this, element, place).fail(expected, got);
    };
    constexpr std::size_t most = 0xFFFFFE;  // beyond, simdjson does not count
    if (object.size() > most) fail("at most " + std::to_string(most) + " members", "more");
    std::vector<std::string_view> keys;
    keys.reserve(object.size());
    for (auto [key, part] : object) keys.push_back(key);
    if (const std::size_t again = first_repeated(keys); again < keys.size())
        fail("every key once", "'" + std::string(keys[again].substr(0, 80)) + "' again");
    for (auto [key, part] : object) check_part(part, 0, key);
}

std::string Json::path_of(Value::Place place) const {
    std::string path;
    while (place.parent > 0) {
        const std::string step =
            place.key.data() ? std::string(place.key.substr(0, 80)) : "[" + std::to_string(place.index) + "]";
        path = step + (path.empty() || path[0] == '[' ? "" : ".") + path;
        place = places_[place.parent - 1];
    }
    return path;
}

void Json::Value::fail(std::string_view expected, std::string_view got) const {
    fail_input(json_->file_, path(), expected, got);
}

Json::Kind Json::Value::kind() const {
    if (!is_there_) return Kind::null;
    using Type = simdjson::dom::element_type;
    switch (element_.type()) {
        case Type::ARRAY:
            return Kind::array;
        case Type::OBJECT:
            return Kind::object;
        case Type::STRING:
            return Kind::string;
        case Type::BOOL:
            return Kind::boolean;
        case Type::NULL_VALUE:
            return Kind::null;
        default:
            return Kind::number;
    }
}

void Json::Value::expect(Kind k) const {
    if (!is(k)) fail(kind_names[static_cast<int>(k)], kind_names[static_cast<int>(kind())]);
}

bool Json::Value::boolean() const {
    expect(Kind::boolean);
    return element_.get_bool().value();
}

double Json::Value::number() const {
    expect(Kind::number);
    return element_.get_double().value();
}

std::int64_t Json::Value::integer(std::int64_t min, std::int64_t max) const {
    expect(Kind::number);
    std::int64_t v = 0;
    if (element_.get_int64().get(v) || v < min || v > max)
        fail("an integer from " + std::to_string(min) + " to " + std::to_string(max),
             simdjson::minify(element_));
    return v;
}

std::string_view Json::Value::string() const {
    expect(Kind::string);
    return element_.get_string().value();
}

bool Json::Value::is_pair(std::string_view& first, std::string_view& second) const {
    simdjson::dom::array array;
    if (!is_there_ || element_.get(array) || array.size() != 2) return false;
    return !array.at(0).get(first) && !array.at(1).get(second);
}

std::size_t Json::Value::size() const {
    if (is(Kind::array)) return simdjson::dom::array(element_).size();
    return is(Kind::object) ? simdjson::dom::object(element_).size() : 0;
}

Json::Value Json::Value::operator[](std::string_view key) const {
    const Place place{json_->keep(place_), 0, key};
    if (is_null()) return {json_, place};
    expect(Kind::object);
    simdjson::dom::element found;
    if (simdjson::dom::object(element_)[key].get(found)) return {json_, place};
    return {json_, found, place};
}

std::string json_quoted(std::string_view text) {
    std::string out = "\"";
    const char *p = text.data(), *end = p + text.size();
    constexpr char hex[] = "0123456789abcdef";
    while (p < end) {
        Char c = decode_utf8(p, end);
        if (!c.valid)
            out += "\xEF\xBF\xBD";
        else if (c.code == '"' || c.code == '\\')
            (out += '\\') += *p;
        else if (c.code == '\n')
            out += "\\n";
        else if (c.code < 0x20 || c.code == 0x7F)
            ((out += "\\u00") += hex[c.code >> 4]) += hex[c.code & 15];
        else
            out.append(p, c.size);
        p += c.size;
    }
    return out + "\"";
}

}  // namespace linnet
