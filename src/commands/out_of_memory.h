// What happens where memory cannot be had: one line and the exit code of the operating system's refusals,
// wherever it is.
#pragma once
#include <new>

namespace linnet {

/// Says that memory ran out and what was asked for, by write() alone; the exit code. Allocates nothing.
int complain_of_memory(const std::bad_alloc& refused) noexcept;

/// From here on an allocation that fails where no exception may pass (a destructor of nlohmann's JSON, a
/// function of the standard library that is noexcept) ends the program with that line and code, as a kill
/// does: what is being written stays under a hidden name, which the next start removes.
void end_in_order_without_memory();

/// The program has done its work: where memory runs out in what the system still calls (destructors of
/// statics), it ends with this code, and silently.
void work_is_done(int code);

}  // namespace linnet
