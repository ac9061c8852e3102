// What is bad in the input and passed over, where that was asked for (--skip-bad).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/terminal.h"

namespace linnet {

struct Skipped {
    std::uint64_t skipped = 0;  // bad ones
    std::string first_skipped;  // what was wrong with the first

    void skip(std::string_view why) {
        if (skipped++ == 0) first_skipped = why;
    }
    /// act(), whose errors of the input are counted where `skip_bad`, and else end with `hint` where they
    /// have none of their own.
    template <class Act>
    void act_or_skip(bool skip_bad, const Act& act, std::string_view hint = {}) {
        try {
            act();
        } catch (const Error& error) {
            const std::string line = error.what();
            if (error.exit() != Exit::input) throw;
            if (skip_bad) return skip(line);
            if (hint.empty() || line.ends_with(')')) throw;
            throw Error(Exit::input, line + " (" + std::string(hint) + ")");
        }
    }
    /// "3 bad `what`s skipped, the first: …"
    std::string told(std::string_view what) const {
        return grouped(skipped) + " bad " + std::string(what) +
               (skipped == 1 ? " skipped: " : "s skipped, the first: ") + first_skipped;
    }
    /// What there is where nothing good is, for an error.
    std::string bad_alone() const { return skipped == 0 ? "none" : "bad ones alone: " + first_skipped; }
};

}  // namespace linnet
