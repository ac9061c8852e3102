// What a command was asked to write: checked before the work, and said when it stands.
#pragma once
#include <string>

#include "base/file.h"

namespace linnet {

/// Before the work, so that hours are not spent on a file that cannot be written: refuses a file that is to
/// be kept, makes the folders that `path` names, and tries to make a file there. Errors as AtomicFile's.
void prepare_output(const std::string& path, Existing existing);

/// "wrote FILE, SIZE"; a folder's size is that of the files in it.
std::string written_line(const std::string& path);
/// That on stderr.
void note_written(const std::string& path);

}  // namespace linnet
