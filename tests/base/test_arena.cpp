#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/arena.h"

using namespace linnet;

TEST_CASE("an arena is zeroed, aligned and writable to its last byte") {
    for (std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{5000}, (std::size_t{16} << 20) + 1}) {
        Arena arena = allocate_arena(bytes);
        auto* begin = static_cast<unsigned char*>(arena.get());
        CHECK(reinterpret_cast<std::uintptr_t>(begin) % 64 == 0);
        CHECK(std::count(begin, begin + bytes, 0) == static_cast<std::ptrdiff_t>(bytes));
        std::fill(begin, begin + bytes, static_cast<unsigned char>(1));
    }
}

TEST_CASE("more memory than there is, is refused with what was asked for") {
    CHECK_THROWS_AS(allocate_arena(std::size_t{1} << 60), MemoryRefused);
    try {
        allocate_arena(std::size_t{1} << 60, "a test");
        FAIL("there is no such memory");
    } catch (const MemoryRefused& refused) {
        CHECK(refused.bytes() == std::size_t{1} << 60);
        CHECK(std::string(refused.use()) == "a test");
        CHECK(refused.all() == 0);
    }
}
