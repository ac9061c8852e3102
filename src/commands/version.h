// What this executable is: for --version, and as provenance in what it writes.
#pragma once
#include <string>

namespace linnet {

extern const char* const version_number;  // "0.1.0"
const char* version_revision();           // the git revision it was built from, or "unknown"
const char* version_compiler();

/// The lines of --version: version, revision, compiler, instruction sets built and found.
std::string version_text();

}  // namespace linnet
