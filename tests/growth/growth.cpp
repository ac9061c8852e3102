// make growth: every parser reads an input, and one twice as long; the work may at most double, and a little.
// Work is comparisons in the sources here, each of which clang's -fsanitize-coverage=trace-cmp shows to the
// functions below: a number that is the same on every machine, where time is not.
#include <cstdint>
#include <cstdio>
#include <exception>

#include "growth.h"

namespace {

std::uint64_t comparisons;

// Of n log n, 2.2 at the sizes here; of n^1.5, 2.8.
constexpr double most = 2.5;

std::uint64_t counted(const linnet::growth::Act& act) {
    const std::uint64_t before = comparisons;
    act();
    return comparisons - before;
}

/// Prints the row, and whether its work grows as its input does, but for what an input of one part takes.
bool holds(const linnet::growth::Row& row) {
    try {
        counted(row.of(1));  // fills tables that the first use of a parser fills
        const std::uint64_t one = counted(row.of(1));
        const std::uint64_t few = counted(row.of(row.few)) - one, many = counted(row.of(2 * row.few)) - one;
        const double ratio = static_cast<double>(many) / static_cast<double>(few);
        const char* verdict = few < row.few ? "  BROKEN: not counted" : ratio > most ? "  BROKEN" : "";
        std::printf("%-58s %7zu %12llu %5.2f%s\n", row.what, row.few, static_cast<unsigned long long>(few),
                    ratio, verdict);
        return *verdict == '\0';
    } catch (const std::exception& error) {
        std::printf("%-58s BROKEN: %.300s\n", row.what, error.what());
        return false;
    }
}

}  // namespace

extern "C" {
void __sanitizer_cov_trace_cmp1(std::uint8_t, std::uint8_t) {
    comparisons++;
}
void __sanitizer_cov_trace_cmp2(std::uint16_t, std::uint16_t) {
    comparisons++;
}
void __sanitizer_cov_trace_cmp4(std::uint32_t, std::uint32_t) {
    comparisons++;
}
void __sanitizer_cov_trace_cmp8(std::uint64_t, std::uint64_t) {
    comparisons++;
}
void __sanitizer_cov_trace_const_cmp1(std::uint8_t, std::uint8_t) {
    comparisons++;
}
void __sanitizer_cov_trace_const_cmp2(std::uint16_t, std::uint16_t) {
    comparisons++;
}
void __sanitizer_cov_trace_const_cmp4(std::uint32_t, std::uint32_t) {
    comparisons++;
}
void __sanitizer_cov_trace_const_cmp8(std::uint64_t, std::uint64_t) {
    comparisons++;
}
void __sanitizer_cov_trace_switch(std::uint64_t, std::uint64_t*) {
    comparisons++;
}
}

int main() {
    using namespace linnet::growth;
    int broken = 0, rows = 0;
    std::printf("%-58s %7s %12s %5s\n", "what is read", "parts", "comparisons", "twice");
    for (const auto& table : {format_rows(), text_rows(), data_rows(), model_rows()})
        for (const Row& row : table) {
            rows++;
            broken += !holds(row);
        }
    std::printf("%d rows, %d broken\n", rows, broken);
    return broken > 0;
}
