// What stands between a model's tokens and a reader: stop strings that may cross token borders, and
// characters that may be cut by them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace linnet {

/// Lets text through until a stop string appears. Text that could be the beginning of one is held back until
/// it is decided. The same wherever the text is cut into pieces. Bytes, not characters.
class StopFilter {
  public:
    explicit StopFilter(std::vector<std::string> stops);

    /// Takes the next bytes, returns those that may leave.
    std::string push(std::string_view bytes);
    /// No more bytes come: what was held back (nothing after a stop).
    std::string finish();
    /// A stop string was seen. What stood before it has left; it and what follows never do.
    bool stopped() const { return stopped_; }

  private:
    std::vector<std::string> stops_;
    std::string held_;  // a proper prefix of some stop string
    bool stopped_ = false;
};

/// Lets only whole UTF-8 characters through. Bytes that can belong to none become U+FFFD, one for each
/// maximal subpart (The Unicode Standard, section 3.9, table 3-8), as browsers do.
class Utf8Stream {
  public:
    std::string push(std::string_view bytes);
    /// No more bytes come: a character left unfinished becomes U+FFFD.
    std::string finish();

  private:
    std::string held_;  // the beginning of one character
};

}  // namespace linnet
