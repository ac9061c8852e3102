// JSON read forwards with simdjson: checked whole, at most one string of it kept, faults with their place.
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace linnet {

struct JsonFault {
    std::size_t at = 0;         // byte of the text
    std::string expected, got;  // for a message
    bool utf8 = false;          // the text is no UTF-8; `at` is where it is not
};

/// Reads texts that are one JSON object each (RFC 8259). It keeps memory between texts; one thread at a time.
class JsonScanner {
  public:
    /// Values may be nested to `depth` levels. `bounded`: numbers must lie within a double's range.
    explicit JsonScanner(std::size_t depth = 512, bool bounded = false);
    ~JsonScanner();

    /// False with `fault` filled where the text is no JSON object. std::bad_alloc where memory runs out.
    bool check(std::string_view text, JsonFault& fault);
    /// The same, and the object's member `field` must be there once, a string, which is appended to `out`
    /// unescaped. Where it fails, `out` is as it was.
    bool extract(std::string_view text, std::string_view field, std::string& out, JsonFault& fault);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace linnet
