// Which file is mapped where in memory, for the handler of SIGBUS, which names the file.
#pragma once
#include <cstddef>
#include <string_view>

namespace linnet {

/// From now on reading a mapped file where it has become shorter (or where its disk fails) ends the process
/// with one line that names the file, and Exit::io: SIGBUS leaves nothing else to do. Called once, first
/// thing in run_program.
void report_lost_pages();

/// Registers [data, data + size) as mapped from the file of that name; forget_mapped() ends that. Any thread.
void remember_mapped(const void* data, std::size_t size, std::string_view name);
void forget_mapped(const void* data);

}  // namespace linnet
