// What a command prints as JSON, an object a line.
#pragma once
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace linnet::test {

inline std::vector<nlohmann::json> records(const std::string& lines) {
    std::vector<nlohmann::json> all;
    std::istringstream in(lines);
    for (std::string line; std::getline(in, line);) all.push_back(nlohmann::json::parse(line));
    return all;
}

}  // namespace linnet::test
