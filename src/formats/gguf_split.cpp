// A GGUF file in several parts, as llama.cpp's gguf-split writes them: the first has the metadata, each has
// tensors of its own and the keys split.no, split.count and split.tensors.count.
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "base/error.h"
#include "formats/gguf.h"
#include "formats/parts.h"

namespace linnet {
namespace {

constexpr std::uint64_t most_parts = 65535;  // the keys are of 16 bits
constexpr std::string_view suffix = ".gguf";
constexpr const char* strange = "a part of another model?";

std::string part_name(std::uint64_t number, std::uint64_t count) {
    return "part " + std::to_string(number + 1) + " of " + std::to_string(count);
}

MappedFile map_part(const std::string& path, std::uint64_t number, std::uint64_t count) {
    if (access(path.c_str(), F_OK) != 0)
        fail_input(path, "", part_name(number, count) + ", beside the others", "no such file");
    return MappedFile(path);
}

using Keys = std::map<std::string_view, std::span<const std::byte>>;

Keys keys_of(const Gguf& file) {
    Keys keys;
    for (std::size_t i = 0; i < file.values().size(); i++)
        keys.emplace(file.values()[i].first, file.stored_value(i));
    return keys;
}

/// That `part` is what its name says, and that nothing in it contradicts the first one.
void check_part(const Gguf& part, std::uint64_t number, std::uint64_t count, const Keys& first) {
    const std::uint64_t of = part.integer("split.count", most_parts).value_or(1),
                        is = part.integer("split.no", most_parts).value_or(0);
    if (of != count)
        fail_input(part.path(), "key 'split.count'", std::to_string(count) + ", as its name says",
                   std::to_string(of));
    if (is != number)
        fail_input(part.path(), "key 'split.no'", std::to_string(number) + " in " + part_name(number, count),
                   std::to_string(is), "the same part twice?");
    for (const auto& [key, value] : keys_of(part)) {
        auto same = first.find(key);
        if (same == first.end() || key == "split.no" || key == "general.alignment") continue;
        if (!std::ranges::equal(same->second, value))
            fail_input(part.path(), "key " + quoted(key), "the value that it has in the first part",
                       "another one", strange);
    }
}

}  // namespace

Gguf::Gguf(const std::string& path, UnknownTypes unknown) : Gguf(MappedFile(path), unknown) {
    const std::uint64_t count = integer("split.count", most_parts).value_or(1);
    if (count <= 1) return;
    const std::uint64_t number = integer("split.no", most_parts).value_or(0);
    if (number >= count)
        fail_input(path, "key 'split.no'", "a number below split.count, " + std::to_string(count),
                   std::to_string(number));
    const std::string ending = part_ending(number, count, suffix);
    if (!path.ends_with(ending))
        fail_input(path, "", "a name that ends in " + ending + ", as it is " + part_name(number, count),
                   "another", "the other parts are found by it");
    const std::string stem = path.substr(0, path.size() - ending.size());
    if (number > 0) *this = Gguf(map_part(stem + part_ending(0, count, suffix), 0, count), unknown);
    const Keys keys = keys_of(*this);
    check_part(*this, 0, count, keys);
    for (std::uint64_t i = 1; i < count; i++) {
        parts_.emplace_back(map_part(stem + part_ending(i, count, suffix), i, count), unknown);
        check_part(parts_.back(), i, count, keys);
    }
    join_parts();
}

Gguf::Gguf(std::string path, std::string header, std::vector<GgufTensor> tensors,
           std::shared_ptr<const void> keep) {
    auto text = std::make_shared<const std::string>(std::move(header));
    *this = Gguf(MappedFile::view(std::as_bytes(std::span(*text)), std::move(path)));
    header_ = std::move(text), kept_ = std::move(keep);
    tensors_ = std::move(tensors);
    order_tensors();
}

/// All parts' tensors as this one's.
void Gguf::join_parts() {
    for (Gguf& part : parts_) {
        tensors_.insert(tensors_.end(), part.tensors_.begin(), part.tensors_.end());
        part.tensors_.clear(), part.tensor_order_.clear();
    }
    order_tensors();
    check_elements();
    const std::uint64_t told = integer("split.tensors.count").value_or(tensors_.size());
    if (told != tensors_.size())
        fail_input(path(), "key 'split.tensors.count'",
                   std::to_string(tensors_.size()) + ", as many as the parts hold", std::to_string(told));
}

void Gguf::order_tensors() {
    tensor_order_.resize(tensors_.size());
    std::iota(tensor_order_.begin(), tensor_order_.end(), 0u);
    std::ranges::stable_sort(tensor_order_, {}, [&](std::uint32_t i) { return tensors_[i].name; });
    for (std::size_t i = 1; i < tensor_order_.size(); i++) {
        const GgufTensor &one = tensors_[tensor_order_[i - 1]], &twin = tensors_[tensor_order_[i]];
        if (one.name == twin.name)
            fail_input(path_of(twin), "tensor " + quoted(twin.name), "it in one part alone",
                       "it in " + path_of(one) + " too", strange);
    }
}

const std::string& Gguf::path_of(const GgufTensor& tensor) const {
    auto holds = [&](const Gguf& part) {
        const std::span<const std::byte> all = part.file_.bytes();
        const std::less<const std::byte*> before;
        return !before(tensor.bytes.data(), all.data()) &&
               before(tensor.bytes.data(), all.data() + all.size());
    };
    for (const Gguf& part : parts_)
        if (holds(part)) return part.path();
    return path();
}

std::uint64_t Gguf::file_bytes() const {
    std::uint64_t bytes = file_.bytes().size();
    for (const Gguf& part : parts_) bytes += part.file_.bytes().size();
    if (kept_)
        for (const GgufTensor& t : tensors_) bytes += t.bytes.size();
    return bytes;
}

}  // namespace linnet
