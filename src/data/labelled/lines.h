// Labelled data: pairs of texts, texts with a class, words with tags; a line each.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/skipped.h"

namespace linnet {

enum class LabelledKind : std::uint8_t { pairs, classes, tags };

/// One line. Pairs: source, target. Classes: text, label, or text, other text, label. Tags: words and as many
/// tags, separated by spaces.
struct LabelledExample {
    std::string first, second, label;  // of pairs `second` is the target, of tags `label` the tags
    bool two = false;                  // classes: there is a second text
    std::uint32_t file = 0;
    std::uint64_t line = 0;  // from 1

    std::optional<std::string_view> other() const {
        return two ? std::optional<std::string_view>(second) : std::nullopt;
    }
};

struct LabelledOptions {
    std::vector<std::string> inputs;  // files, "-"; .tsv, or .jsonl with the fields below; also .gz, .zst
    std::vector<std::string> fields;  // of a JSON line, in their order; empty: the kind's own
    std::string format = "auto";      // "text" (tab-separated), "jsonl", "auto": by the name
    bool skip_bad = false;            // count bad lines instead of stopping at the first
    std::string except = {};          // a folder that is no part of the data: the run's own
};

struct LabelledData : Skipped {
    std::vector<LabelledExample> all;  // in the order of the files
    std::vector<std::string> files;
    std::uint64_t bytes = 0;
    std::string sha256;

    /// "FILE: line 12", for an error.
    std::string place(const LabelledExample& example) const;
};

/// "a,b" -> a, b: LabelledOptions::fields as people give them.
std::vector<std::string> field_names(std::string_view list);

/// Reads every line. Error(Exit::input) naming file and line for a missing tab, an empty side, another number
/// of tags than words, a line that is no UTF-8; also where there is no example at all.
LabelledData read_labelled(LabelledKind kind, const LabelledOptions& options);

/// Whether `fraction` of examples, chosen by their first text, leaves this one out.
bool held_out(const LabelledExample& example, double fraction);

}  // namespace linnet
