// The files of models/templates, as they are: the Makefile writes the table's source when one of them
// changes.
#pragma once
#include <span>

#include "base/embedded_file.h"

namespace linnet {

/// In the order of their paths.
std::span<const EmbeddedFile> chat_template_files();

}  // namespace linnet
