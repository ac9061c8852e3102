// Regular expressions of tokenizer files, on PCRE2 (Unicode, limits on backtracking and looking ahead).
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace linnet {

/// A compiled expression; immutable, usable from many threads at once.
class Regex {
  public:
    /// `pattern` in the dialect of Oniguruma (Hugging Face's library takes its default syntax), where \s is
    /// White_Space, \w and \d are Unicode's, and ^ and $ match at every line. Error(Exit::input) naming
    /// `file` and `where` if it does not compile.
    Regex(std::string_view pattern, std::string_view file, std::string_view where);
    ~Regex();
    Regex(const Regex&) = delete;

    const std::string& pattern() const { return pattern_; }

    /// Goes through the matches in one text, which must be UTF-8 and outlive it. PCRE2 is shown a window of
    /// the text behind the place where it searches, so that what a place costs does not grow with the text; a
    /// place that looks beyond the window is tried by itself, in a larger one. The matches are the same.
    class Matches {
      public:
        Matches(const Regex& regex, std::string_view text, std::size_t window = 1024)
            : regex_(regex), text_(text), usual_(window), window_(window) {}
        /// The next match that is not empty; false at the end. Error(Exit::input) where backtracking passes
        /// the limit, as (a+)+ can make it, or where too many places look far ahead.
        bool next(std::size_t& begin, std::size_t& end);
        /// Bytes of the larger windows.
        std::size_t looked_ahead() const { return looked_ahead_; }

      private:
        int match();
        std::size_t behind(std::size_t at) const;
        void look_further(std::size_t cost, const char* why);
        const Regex& regex_;
        std::string_view text_;
        std::size_t at_ = 0, usual_, window_, looked_ahead_ = 0;
    };

  private:
    struct Compiled;
    std::string pattern_, place_;
    std::unique_ptr<Compiled> compiled_;
};

}  // namespace linnet
