// The files of models/architectures, as they are: the Makefile writes the table's source when one of them
// changes.
#pragma once
#include <span>

#include "base/embedded_file.h"

namespace linnet {

/// In the order of their paths.
std::span<const EmbeddedFile> architecture_files();

}  // namespace linnet
