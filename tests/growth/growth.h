// Work that is counted for an input and for one twice as long.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace linnet::growth {

/// What is counted; what it needs is made before.
using Act = std::function<void()>;

struct Row {
    const char* what;
    std::size_t few;                     // the smaller input's size; the larger one has twice that
    std::function<Act(std::size_t)> of;  // of an input of that size, which must be accepted
};

std::vector<Row> format_rows();
std::vector<Row> text_rows();
std::vector<Row> data_rows();
std::vector<Row> model_rows();

}  // namespace linnet::growth
