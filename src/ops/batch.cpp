#include "ops/batch.h"

namespace linnet {
namespace {

template <class List>
auto* find(List& list, std::string_view name) {
    for (auto& item : list)
        if (item.name == name) return &item.value;
    return static_cast<decltype(&list.front().value)>(nullptr);
}

template <class List>
auto& find_or_make(List& list, std::string_view name) {
    if (auto* found = find(list, name)) return *found;
    list.push_back({std::string(name), {}});
    return list.back().value;
}

}  // namespace

Rows& Batch::space(std::string_view name) {
    return name == "tokens" ? rows : find_or_make(spaces_, name);
}
std::vector<std::int32_t>& Batch::stream(std::string_view name) {
    if (name == "tokens") return tokens;
    if (name == "targets") return targets;
    if (name == "outputs") return outputs;
    return find_or_make(streams_, name);
}
std::vector<float>& Batch::vectors(std::string_view name) {
    return find_or_make(vectors_, name);
}

const Rows* Batch::find_space(std::string_view name) const {
    return name == "tokens" ? &rows : find(spaces_, name);
}
const std::vector<std::int32_t>* Batch::find_stream(std::string_view name) const {
    if (name == "tokens") return &tokens;
    if (name == "targets") return &targets;
    if (name == "outputs") return &outputs;
    return find(streams_, name);
}
const std::vector<float>* Batch::find_vectors(std::string_view name) const {
    return find(vectors_, name);
}

}  // namespace linnet
