#include "commands/version.h"

#include "base/processors.h"
#include "kernels/kernels.h"

#ifndef LINNET_REVISION
#define LINNET_REVISION "unknown"
#endif

namespace linnet {

const char* const version_number = "0.1.0";

const char* version_revision() {
    return LINNET_REVISION;
}

const char* version_compiler() {
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

std::string version_text() {
    std::string found, in_use = kernels().name;
    for (const KernelTable<float>* table : usable_kernels())
        found += std::string(found.empty() ? "" : " ") + table->name;
    std::string text = std::string("linnet ") + version_number + "\n";
    text += std::string("revision          ") + version_revision() + "\n";
    text += std::string("compiler          ") + version_compiler() + "\n";
    text += std::string("instruction sets  built: ") + built_kernels() + "; usable here: " + found +
            "; in use: " + in_use + "\n";
    text += "cores             " + std::to_string(physical_cores()) + "\n";
    return text;
}

}  // namespace linnet
