// The files of models/templates, as they are: the Makefile writes the table's source when one of them
// changes.
#pragma once
#include <span>
#include <string_view>

namespace linnet {

struct ChatTemplateFile {
    std::string_view path, text;
};

/// In the order of their paths.
std::span<const ChatTemplateFile> chat_template_files();

}  // namespace linnet
