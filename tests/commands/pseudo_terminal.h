// A program on a terminal of its own, as a person has it: what it prints, what is typed.
#pragma once
#include <string>
#include <vector>

namespace linnet::test {

class PseudoTerminal {
  public:
    /// Runs build/linnet with these arguments; stdin, stdout and stderr are the terminal, without colours.
    /// `environment`: "NAME=value".
    PseudoTerminal(const std::vector<std::string>& arguments, const std::vector<std::string>& environment);
    ~PseudoTerminal();
    PseudoTerminal(const PseudoTerminal&) = delete;

    void type(const std::string& keys);
    /// Waits until `text` has been printed after what an earlier call waited for. False after 20 seconds
    /// without it, or where the program has ended.
    bool shows(const std::string& text);
    /// All that was printed.
    const std::string& printed() const { return printed_; }
    /// Waits for the program's end, 20 seconds from its last word on; 128 + signal where one ended it.
    int exit();
    void signal(int number);
    /// The window has so many columns now.
    void resize(int columns);

  private:
    bool read_more();
    int terminal_ = -1, program_ = -1;
    std::string printed_;
    std::size_t seen_ = 0;
    bool ended_ = false;
};

}  // namespace linnet::test
