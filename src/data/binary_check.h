// Files that are no text, told by their first bytes and named for people.
#pragma once
#include <string_view>

namespace linnet {

/// "a GGUF model file", "a PNG picture", …, "a binary file" (with many zero bytes at its beginning), or empty
/// for what may be text. `head`: the file's first bytes, some thousand where it has them.
std::string_view binary_kind(std::string_view head);

}  // namespace linnet
