// A file that is part of the executable.
#pragma once
#include <string_view>

namespace linnet {

struct EmbeddedFile {
    std::string_view path, text;
};

}  // namespace linnet
