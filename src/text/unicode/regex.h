// Regular expressions of tokenizer files, on PCRE2 (JIT, Unicode, a limit on backtracking).
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace linnet {

/// A compiled expression; immutable, usable from many threads at once.
class Regex {
  public:
    /// `pattern` in the dialect of Rust's regex and Oniguruma, where \s is White_Space and \w and \d are
    /// Unicode's. Error(Exit::input) naming `file` and `where` if it does not compile.
    Regex(std::string_view pattern, std::string_view file, std::string_view where);
    ~Regex();
    Regex(const Regex&) = delete;

    const std::string& pattern() const { return pattern_; }

    /// Goes through the matches in one text, which must be UTF-8 and outlive it.
    class Matches {
      public:
        Matches(const Regex& regex, std::string_view text) : regex_(regex), text_(text) {}
        /// The next match that is not empty; false at the end. Error(Exit::input) where backtracking passes
        /// the limit, as (a+)+ can make it.
        bool next(std::size_t& begin, std::size_t& end);

      private:
        const Regex& regex_;
        std::string_view text_;
        std::size_t at_ = 0;
    };

  private:
    struct Compiled;
    std::string pattern_, place_;
    std::unique_ptr<Compiled> compiled_;
};

}  // namespace linnet
