// The tensors of recurrent layers, as GGUF's writers write them (family_files.h).
#pragma once
#include "family_files.h"

namespace linnet::test {

/// Names without "blk.N.". Sizes are those of the file's keys.
std::vector<ExtraTensor> mixer_tensors(const FamilyFile& file, const std::string& mixer, std::int64_t layer);

}  // namespace linnet::test
