// The nearest known name, for "did you mean".
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace linnet {

/// Edits (insert, delete, replace, swap of neighbours) between two names, letters' case ignored.
int edit_distance(std::string_view a, std::string_view b);

/// The known name with the fewest edits, the first of equals; nothing where even that one is unlike `name`
/// (more than a third of its letters differ, and neither begins with the other).
std::optional<std::string> nearest(std::string_view name, std::span<const std::string> known);

/// "did you mean X?"; `otherwise` where none is near.
std::string did_you_mean(std::string_view name, std::span<const std::string> known,
                         std::string_view otherwise = {});

}  // namespace linnet
