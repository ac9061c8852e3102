// JSON (RFC 8259) read forwards, value by value, for headers of up to 100 MB: no tree, no recursion on what
// the file decides, memory for one string at a time.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace linnet {

/// A cursor over a text that must outlive it. Anything else than was asked for is Error(Exit::input) with
/// `file`, `what` and the byte.
class JsonReader {
  public:
    static constexpr int deepest = 32;  // arrays and objects in each other
    static constexpr std::size_t longest_key = std::size_t{1} << 16, longest_string = std::size_t{1} << 24;

    JsonReader(std::string_view text, std::string file, std::string what)
        : text_(text), file_(std::move(file)), what_(std::move(what)) {}

    /// Calls member(key) for each member; it must read the value. `key` is valid until the reader's next
    /// string.
    template <class Member>
    void object(const Member& member) {
        open('{', "an object");
        for (bool first = true; more('}', first); first = false) {
            const std::string key(string(longest_key));
            expect(':');
            member(std::string_view(key));
        }
        depth_--;
    }
    /// Calls element() for each element; it must read it.
    template <class Element>
    void array(const Element& element) {
        open('[', "an array");
        for (bool first = true; more(']', first); first = false) element();
        depth_--;
    }
    /// A string of at most so many bytes, its escapes resolved; valid until the next one is read.
    std::string_view string(std::size_t longest = longest_string);
    /// A whole number from 0 that fits 64 bits, without exponent.
    std::uint64_t whole_number();
    /// Any value.
    void skip();
    /// Nothing but white space may follow.
    void end();
    [[noreturn]] void refuse(std::string_view expected, std::string_view got) const;

  private:
    char peek();  // the next byte that is no white space; '\0' at the end
    void expect(char c);
    void open(char c, std::string_view what);
    bool more(char close, bool first);
    void number();
    void word(std::string_view word);
    std::uint32_t hex4();
    void escape();
    std::string shown() const;

    std::string_view text_;
    std::string file_, what_, string_;
    std::size_t at_ = 0;
    int depth_ = 0;
};

}  // namespace linnet
