// What a command was asked to write: checked before the work, and said when it stands.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"

namespace linnet {

/// Before the work, so that hours are not spent on a file that cannot be written: refuses a file that is to
/// be kept, makes the folders that `path` names, and tries to make a file there. Errors as AtomicFile's.
void prepare_output(const std::string& path, Existing existing);

/// Bytes of a file, or of all files in a folder.
std::uint64_t bytes_at(const std::string& path);
/// "wrote FILE, SIZE"; `bytes`: of what was written, where a folder may hold other files, too.
std::string written_line(const std::string& path, std::optional<std::uint64_t> bytes = {});
/// That on stderr.
void note_written(const std::string& path, std::optional<std::uint64_t> bytes = {});

}  // namespace linnet
