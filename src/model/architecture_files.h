// The files of models/architectures, as they are: the Makefile writes the table's source when one of them
// changes.
#pragma once
#include <span>
#include <string_view>

namespace linnet {

struct ArchitectureFile {
    std::string_view path, text;
};

/// In the order of their paths.
std::span<const ArchitectureFile> architecture_files();

}  // namespace linnet
