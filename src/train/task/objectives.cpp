#include "train/task/objectives.h"

#include <algorithm>
#include <stdexcept>

namespace linnet {

std::span<const Objective> objectives() {
    static const std::vector<std::string> end{"<|endoftext|>"};
    static const std::vector<std::string> marks{"<|endoftext|>", "[CLS]", "[SEP]"};
    static const std::vector<std::string> mask{"<|endoftext|>", "[CLS]", "[SEP]", "[MASK]"};
    static const std::string encoder = "encoder", both = "encoder-decoder";
    static const Objective rows[] = {
        {.name = "next", .kind = "decoder", .usual = true, .next_token = true},
        {.name = "masked", .kind = encoder, .usual = true, .shortest = 3, .tokens = mask},
        {.name = "replaced",
         .kind = encoder,
         .head = "tags",
         .classes = 2,
         .shortest = 3,
         .generator = true,
         .tokens = mask},
        {.name = "spans", .kind = both, .shortest = 3, .sentinels = true, .tokens = end},
        {.name = "pairs", .kind = both, .usual = true, .examples = LabelledKind::pairs, .tokens = end},
        {.name = "classes",
         .kind = encoder,
         .head = "classes",
         .usual = true,
         .examples = LabelledKind::classes,
         .tokens = marks},
        {.name = "tags",
         .kind = encoder,
         .head = "tags",
         .usual = true,
         .examples = LabelledKind::tags,
         .tokens = marks},
    };
    return rows;
}

const Objective* find_objective(std::string_view name) {
    const auto row = std::ranges::find(objectives(), name, &Objective::name);
    return row == objectives().end() ? nullptr : &*row;
}

const Objective& objective_of(std::string_view name) {
    if (const Objective* row = find_objective(name)) return *row;
    throw std::logic_error("an objective without a row in the table");
}

std::vector<std::string> objectives_for(std::string_view kind, std::string_view head) {
    std::vector<std::string> names;
    for (const Objective& row : objectives())
        if (row.kind == kind && row.head == head && row.classes == 0)
            names.insert(row.usual ? names.begin() : names.end(), row.name);
    return names;
}

}  // namespace linnet
