// A model made by the program itself, in a second, for tests that need one.
#pragma once
#include <string>

#include "support.h"

namespace linnet::test {

/// A few hundred lines of text with a pattern in it: "one two three …" counted out.
std::string counting_text();

/// The path of a GGUF that `linnet train` made of counting_text(): characters, context 32. Made once per test
/// run.
const std::string& tiny_model();

/// Settings that make a model of that size.
std::string tiny_config();

/// A folder with counting_text() in `text`, and shell lines that run in it.
class Workplace {
  public:
    /// `before`: shell that goes before each line, such as NAME=value.
    explicit Workplace(std::string before = {});
    Outcome operator()(const std::string& line) const;
    /// Checks that the line ends with that code and one line on stderr that has `said` in it.
    void refuses(const std::string& line, int exit, const std::string& said) const;
    std::string file(const std::string& name) const { return read_text(s / name); }
    Scratch s;

  private:
    std::string before_;
};

/// The file `from` with a chat template in it.
void with_template(const std::string& from, const std::string& to, const std::string& source);
/// A source that means the template of that name.
extern const char chatml_template[];

/// Exactly one line on stderr, `linnet: error: …`.
bool is_one_error_line(const std::string& err);

}  // namespace linnet::test
