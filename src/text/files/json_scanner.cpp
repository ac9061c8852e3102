#include "text/files/json_scanner.h"

#include <simdjson.h>

#include <algorithm>
#include <new>
#include <optional>

#include "text/encode/vocabulary.h"
#include "text/unicode/unicode.h"

namespace linnet {
namespace {

namespace ondemand = simdjson::ondemand;
constexpr std::string_view spaces = " \t\r\n";

/// What simdjson's errors say was expected.
std::string_view expected_by(simdjson::error_code code) {
    using namespace simdjson;
    constexpr std::pair<error_code, std::string_view> table[] = {
        {EMPTY, "an object"},
        {INCORRECT_TYPE, "an object"},
        {INCOMPLETE_ARRAY_OR_OBJECT, "the end of an array or object"},
        {UNCLOSED_STRING, "'\"'"},
        {UNESCAPED_CHARS, "control characters written as escapes"},
        {STRING_ERROR, "a string with JSON's escapes"},
        {TAPE_ERROR, "a comma, a colon, a name or a closing bracket"},
        {UTF8_ERROR, "UTF-8"},
    };
    for (const auto& [known, expected] : table)
        if (known == code) return expected;
    return "JSON";
}

/// Where a string holds a control character; where none does and one does not end, that one's begin.
std::size_t fault_in_strings(std::string_view text) {
    std::size_t begin = text.size();
    bool inside = false;
    for (std::size_t i = 0; i < text.size(); i++) {
        if (text[i] == '"') {
            inside = !inside;
            begin = i;
        } else if (inside && static_cast<unsigned char>(text[i]) < 0x20) {
            return i;
        } else if (inside && text[i] == '\\' && i + 1 < text.size() &&
                   static_cast<unsigned char>(text[i + 1]) >= 0x20) {
            i++;
        }
    }
    return begin;
}

/// RFC 8259, section 6.
bool is_number(std::string_view s) {
    auto take = [&](std::string_view any) {
        if (s.empty() || any.find(s[0]) == std::string_view::npos) return false;
        s.remove_prefix(1);
        return true;
    };
    auto digits = [&] {
        bool some = false;
        while (take("0123456789")) some = true;
        return some;
    };
    take("-");
    if (!take("0") && !digits()) return false;
    if (take(".") && !digits()) return false;
    if (take("eE")) {
        take("+-");
        if (!digits()) return false;
    }
    return s.empty();
}

struct Refused {
    std::string expected;
};

ondemand::field field_of(simdjson::simdjson_result<ondemand::field> result) {
    ondemand::field field;
    if (simdjson::error_code code = std::move(result).get(field)) throw simdjson::simdjson_error(code);
    return field;
}

}  // namespace

struct JsonScanner::State {
    ondemand::parser parser;
    std::string padded;  // simdjson reads a few bytes beyond the text
    std::size_t depth;
    bool bounded;
    const char* here = nullptr;  // the value being read, while no other fault than its own may arise

    void members(ondemand::document& document, std::string_view field, std::string* out);
    void value(ondemand::value value, std::size_t level);
    void scalar(ondemand::value value);
    bool run(std::string_view text, std::string_view field, std::string* out, JsonFault& fault);
};

void JsonScanner::State::scalar(ondemand::value value) {
    std::string_view token = value.raw_json_token();  // with the spaces behind it
    token = token.substr(0, token.find_last_not_of(spaces) + 1);
    if (token == "true" || token == "false" || token == "null") return;
    if (!is_number(token)) throw Refused{"a value"};
    if (bounded && value.get_number().error()) throw Refused{"a number within a double's range"};
}

void JsonScanner::State::value(ondemand::value value, std::size_t level) {
    here = value.current_location();
    ondemand::json_type type;
    if (value.type().get(type)) throw Refused{"a value"};
    const bool has_parts = type == ondemand::json_type::array || type == ondemand::json_type::object;
    if (has_parts && level > depth) throw Refused{"at most " + std::to_string(depth) + " levels of nesting"};
    switch (type) {
        case ondemand::json_type::array:
            for (auto element : value.get_array()) {
                here = nullptr;
                this->value(element.value(), level + 1);
            }
            break;
        case ondemand::json_type::object:
            for (auto result : value.get_object()) {
                here = nullptr;
                ondemand::field member = field_of(result);
                member.unescaped_key().value();
                this->value(member.value(), level + 1);
            }
            break;
        case ondemand::json_type::string:
            value.get_string().value();
            break;
        default:
            scalar(value);
    }
    here = nullptr;
}

void JsonScanner::State::members(ondemand::document& document, std::string_view field, std::string* out) {
    bool is_found = false;
    for (auto result : document.get_object()) {
        here = nullptr;
        ondemand::field member = field_of(result);
        const std::string_view key = member.unescaped_key();
        ondemand::value value = member.value();
        if (!out || key != field) {
            this->value(value, 2);
            continue;
        }
        here = value.current_location();
        const std::string name = "\"" + std::string(field) + "\"";
        if (is_found) throw Refused{"the field " + name + " once"};
        ondemand::json_type type;
        if (value.type().get(type) || type != ondemand::json_type::string)
            throw Refused{"a string as " + name};
        out->append(value.get_string().value());
        is_found = true;
        here = nullptr;
    }
    if (!document.current_location().error()) throw Refused{"nothing behind the object"};
    if (out && !is_found) throw Refused{"the field \"" + std::string(field) + "\""};
}

bool JsonScanner::State::run(std::string_view text, std::string_view field, std::string* out,
                             JsonFault& fault) {
    const std::size_t before = out ? out->size() : 0;
    padded.assign(text).append(simdjson::SIMDJSON_PADDING, ' ');
    const char *begin = padded.data(), *end = begin + text.size(), *at = begin;
    ondemand::document document;
    auto stopped = [&]() -> const char* {
        const char* place = nullptr;
        return document.current_location().get(place) ? end : std::min(place, end);
    };
    try {
        if (simdjson::error_code code = parser.iterate(begin, text.size(), padded.size()).get(document)) {
            if (code == simdjson::MEMALLOC) throw std::bad_alloc();
            fault.expected = expected_by(code);
            fault.utf8 = code == simdjson::UTF8_ERROR;
            at += fault.utf8 ? valid_utf8_prefix(text) : fault_in_strings(text);
        } else {
            here = nullptr;
            members(document, field, out);
            return true;
        }
    } catch (const Refused& refused) {
        fault.expected = refused.expected;
        at = here ? here : stopped();
    } catch (const simdjson::simdjson_error& error) {
        fault.expected = expected_by(error.error());
        if (error.error() == simdjson::INCOMPLETE_ARRAY_OR_OBJECT)
            at = end;
        else if (error.error() == simdjson::INCORRECT_TYPE)
            at += std::min(text.find_first_not_of(spaces), text.size());
        else
            at = here ? here : stopped();
    }
    if (out) out->resize(before);
    fault.at = static_cast<std::size_t>(at - begin);
    if (at == end) {
        fault.got = "the end";
    } else {
        const Char c = decode_utf8(at, end);
        fault.got = c.valid && c.code >= 0x20 ? "'" + std::string(at, c.size) + "'"
                                              : spelling_of_byte(static_cast<std::uint8_t>(*at));
    }
    return false;
}

JsonScanner::JsonScanner(std::size_t depth, bool bounded) : state_(std::make_unique<State>()) {
    state_->depth = depth;
    state_->bounded = bounded;
}

JsonScanner::~JsonScanner() = default;

bool JsonScanner::check(std::string_view text, JsonFault& fault) {
    return state_->run(text, {}, nullptr, fault);
}

bool JsonScanner::extract(std::string_view text, std::string_view field, std::string& out, JsonFault& fault) {
    return state_->run(text, field, &out, fault);
}

}  // namespace linnet
