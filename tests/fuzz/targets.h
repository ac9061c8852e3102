// The fuzz targets as the tests have them: a table that the Makefile makes of the folder.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace linnet::fuzz {

using Run = int(const std::uint8_t* data, std::size_t size);

struct Target {
    const char* name;  // of tests/fuzz/fuzz_NAME.cpp, and of its seeds' folder
    Run* run;
};

std::span<const Target> targets();

}  // namespace linnet::fuzz
