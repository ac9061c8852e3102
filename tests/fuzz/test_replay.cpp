#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <random>

#include "fuzz/targets.h"
#include "support.h"

using namespace linnet;
namespace fs = std::filesystem;

namespace {

constexpr int mutations = 200;  // of each seed

/// What libFuzzer does to an input, in small: one to four times bytes are changed, put in, taken out or
/// doubled.
std::string mutated(std::string bytes, std::mt19937& random) {
    const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
    constexpr std::array<std::uint32_t, 8> limits = {0,           1,           0x7f,        0x80,
                                                     0x7fff'ffff, 0x8000'0000, 0xffff'ffff, 0x0100'0000};
    for (std::size_t left = 1 + below(4); left > 0; left--) {
        const std::size_t at = below(bytes.size() + 1),
                          length = below(std::min<std::size_t>(bytes.size() - at, 64) + 1);
        switch (below(6)) {
            case 0:
                if (at < bytes.size()) bytes[at] = static_cast<char>(random());
                break;
            case 1:
                if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8));
                break;
            case 2:
                bytes.insert(at, 1 + below(4), static_cast<char>(random()));
                break;
            case 3:
                bytes.erase(at, length);
                break;
            case 4:
                bytes.insert(below(bytes.size() + 1), bytes.substr(at, length));
                break;
            default: {
                const std::uint32_t limit = limits[below(limits.size())];
                const std::size_t size = std::min<std::size_t>(std::size_t{1} << below(3), bytes.size() - at);
                bytes.replace(at, size, reinterpret_cast<const char*>(&limit), size);
            }
        }
    }
    return bytes;
}

void run(const fuzz::Target& target, const std::string& input) {
    CHECK(target.run(reinterpret_cast<const std::uint8_t*>(input.data()), input.size()) == 0);
}

}  // namespace

TEST_CASE("every fuzz target takes its seeds, what once failed among them, and mutations of them") {
    const fs::path seeds =
        fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "tests/fuzz/seeds";
    if (!fs::exists(seeds)) return test::skip("needs the checkout's tests/");
    CHECK(fuzz::targets().size() > 30);
    for (const fuzz::Target& target : fuzz::targets()) {
        INFO(target.name);
        REQUIRE_MESSAGE(fs::exists(seeds / target.name), "no seeds");
        std::vector<fs::path> files;
        for (const auto& file : fs::directory_iterator(seeds / target.name)) files.push_back(file.path());
        REQUIRE_MESSAGE(!files.empty(), "no seeds");
        std::ranges::sort(files);
        run(target, "");
        // A target that crashes takes the tests with it: doctest says the names of the subcases.
        for (const fs::path& file : files) {
            SUBCASE((std::string(target.name) + "/" + file.filename().string()).c_str()) {
                const std::string seed = test::read_text(file.string());
                run(target, seed);
                std::mt19937 random(1);
                for (int i = 0; i < mutations; i++) run(target, mutated(seed, random));
            }
        }
    }
}
