#include "train/law.h"

#include <algorithm>
#include <cmath>

namespace linnet {
namespace {

// Bits per byte: least + by_parameters / N^power + by_bytes / D^power (Hoffmann et al. 2022, "Training
// compute-optimal large language models", section 3.3), N in millions of parameters, D in 10 MB. One power
// for both, that of the fit of Besiroglu et al. 2024 (0.348 and 0.366), as runs of minutes cannot tell it:
// the best model grows with the root of the arithmetic. tools/fit_law.sh fitted the rest.
constexpr struct { double least, by_parameters, by_bytes, power; } law = {1.085, 0.407, 0.451, 0.35};

// Muennighoff et al. 2023, "Scaling data-constrained language models", section 3.1: what R readings after the
// first are worth, in readings.
constexpr double worth = 15.4;

}  // namespace

double effective_bytes(double bytes_read, double text_bytes) {
    if (bytes_read <= text_bytes) return bytes_read;
    const double again = bytes_read / text_bytes - 1;
    return text_bytes * (1 + worth * (1 - std::exp(-again / worth)));
}

double expected_bits(const LawPoint& point) {
    const double parameters = std::max(1.0, point.parameters) / 1e6,
                 bytes = std::max(1.0, effective_bytes(point.bytes_read, point.text_bytes)) / 1e7;
    return law.least + law.by_parameters / std::pow(parameters, law.power) +
           law.by_bytes / std::pow(bytes, law.power);
}

// Texts differ in what cannot be learned more than in how what can be learned falls (Hoffmann's E and the
// rest): from a pilot to runs of 3 to 40 minutes the bits fell 0.70 to 0.72 times as far as the law's on
// manual pages in German, which had 0.55 times its bits, and 0.92 to 0.98 times on Perl's documentation,
// which had 0.86. So the rest is scaled by the root of that, and what is left is the text's own least, which
// is not negative.
double bits_of_text(double expected, const LawCheck& check) {
    const double learned = check.expected - law.least;
    const double scale = std::min(std::sqrt(check.found / check.expected), check.found / learned);
    return check.found - scale * (check.expected - expected);
}

}  // namespace linnet
