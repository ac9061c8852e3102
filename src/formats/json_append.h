// JSON objects with as many members as a file has names.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace linnet {

/// Adds a member whose key is new to the object: nlohmann's own ways would look through all of them for it.
inline void append(nlohmann::ordered_json& object, std::string key, nlohmann::ordered_json value) {
    object.get_ref<nlohmann::ordered_json::object_t&>().emplace_back(std::move(key), std::move(value));
}

}  // namespace linnet
