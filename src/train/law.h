// The scaling law of default runs (candidates.h): how well a model predicts, by its parameters and by what it
// has read. models/RESULTS.md has the runs that it was fitted to, its error, and where it has not been tried.
#pragma once

namespace linnet {

struct LawPoint {
    double parameters = 0;  // their number
    double bytes_read = 0;  // of text, in all
    double text_bytes = 0;  // to train on: what is read again counts less and less
};

/// Bits per byte of the text that the law was fitted to, held out, once the learning rate has decayed. Its
/// form is that of Hoffmann et al. 2022.
double expected_bits(const LawPoint& point);

/// A short run on another text: what the law says of it, and what it had.
struct LawCheck {
    double expected, found;
};
/// What the law's `expected` bits per byte are on that text.
double bits_of_text(double expected, const LawCheck& check);

/// Bytes that would say as much, each read once.
double effective_bytes(double bytes_read, double text_bytes);

}  // namespace linnet
