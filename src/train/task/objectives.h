// What a run may learn: one row for each objective, with everything that the rest of training asks of it.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/labelled/lines.h"

namespace linnet {

struct Objective {
    std::string name{};           // train.objective
    std::string kind{};           // model.kind that can learn it
    std::string head = "tokens";  // model.head.kind that it needs
    bool usual = false;           // what "auto" stands for, of models of that kind and head
    std::int64_t classes = 0;     // model.head.classes that it needs; 0: as many as the data has
    bool next_token = false;      // each row's target is the token behind it
    std::int64_t shortest = 1;    // train.sequence that it needs; above 1: it hides tokens of its windows
    std::optional<LabelledKind> examples{};  // what it reads in the place of a text
    bool generator = false;                  // a smaller model beside this one replaces tokens
    bool sentinels = false;                  // a token of its own stands for each span that is hidden
    std::vector<std::string> tokens{};       // control tokens of a vocabulary made for it, beside sentinels
};

/// All, in the order in which they are listed.
std::span<const Objective> objectives();

/// None: "auto", or no objective's name.
const Objective* find_objective(std::string_view name);
/// std::logic_error where there is none: the name of a config that was read.
const Objective& objective_of(std::string_view name);

/// Names of what models of this kind and head can learn, the usual one first. Left out is what asks for a
/// number of classes: it has a head of its own made.
std::vector<std::string> objectives_for(std::string_view kind, std::string_view head);

}  // namespace linnet
