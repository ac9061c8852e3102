// What a command prints as JSON, one object per line.
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

/// Those of an event, of a run's log.
inline std::vector<nlohmann::json> records(const std::string& lines, const std::string& event) {
    std::vector<nlohmann::json> some;
    for (nlohmann::json& record : records(lines))
        if (record["event"] == event) some.push_back(std::move(record));
    return some;
}

}  // namespace linnet::test
