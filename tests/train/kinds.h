// A small config of every kind of model with data that it learns from, and a folder to train it in.
#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "support.h"

namespace linnet::test {

/// "four two" of 42.
std::string words_of_number(int n);

/// A kind of model: its config and its data, by the name of the file that they are written to.
struct Kind {
    std::string name, config, data, file;
    int steps;  // after which its loss has fallen
};

std::vector<Kind> kinds();
/// That of this name.
Kind kind_named(const std::string& name);

/// Each behind a --set of its own.
std::vector<std::string> set(std::initializer_list<const char*> settings);

/// A folder with a kind's config and data.
struct Place {
    explicit Place(const Kind& kind);
    Outcome train(const std::string& out, int steps, std::vector<std::string> more = {}) const;
    /// Of the file a run ended with.
    std::string hash(const std::string& out) const;
    std::vector<double> losses(const std::string& out) const;

    Scratch s;
    std::string data;
};

}  // namespace linnet::test
