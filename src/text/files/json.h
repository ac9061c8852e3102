// A strict JSON reader for tokenizer files, which hold hundreds of thousands of short strings: values are
// views into the text (strings with escapes are decoded into an arena), arrays and objects are ranges of one
// vector. nlohmann::json takes 0.3 s for a vocabulary of 200 000 tokens and lets a repeated key pass.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"

namespace linnet {

/// Parsed whole; Error(Exit::input) with line and column where it is no JSON (RFC 8259), is nested deeper
/// than 100, or an object repeats a key.
class Json {
  public:
    enum class Kind : std::uint8_t { null, boolean, number, string, array, object };

  private:
    // Eight bytes, as the first touch of memory is a third of the time that a large vocabulary takes. A
    // member is two nodes: its key's, a string, and its value's.
    struct Node {
        // Where a string, number or word stands in the text, or, `decoded`, in the arena. Of an array or
        // object: the node behind its last; 0 while it is open.
        std::uint32_t at = 0;
        std::uint32_t size : 28 = 0, kind_ : 3 = 0, decoded : 1 = 0;  // size: bytes, elements, members
        Kind kind() const { return static_cast<Kind>(kind_); }
    };
    static constexpr std::size_t most = (std::size_t{1} << 28) - 1;
    std::string_view text_of(std::uint32_t index) const {
        const Node& n = nodes_[index];
        return (n.decoded ? std::string_view(arena_) : text_).substr(n.at, n.size);
    }
    bool is_open(std::uint32_t index) const {
        return nodes_[index].kind() >= Kind::array && nodes_[index].at == 0;
    }
    /// The node behind a value.
    std::uint32_t behind(std::uint32_t index) const {
        return nodes_[index].kind() >= Kind::array ? nodes_[index].at : index + 1;
    }

  public:
    /// A value; cheap to copy, valid as long as its Json.
    class Value {
      public:
        Kind kind() const { return node().kind(); }
        bool is(Kind k) const { return kind() == k; }
        bool is_null() const { return is(Kind::null); }
        /// Where it stands, for messages: "model.vocab".
        std::string path() const { return json_->path_of(index_); }

        // Checked: a wrong kind is an Error that names the path.
        bool boolean() const;
        double number() const;
        std::int64_t integer(std::int64_t min, std::int64_t max) const;
        std::string_view string() const;

        std::size_t size() const { return kind() >= Kind::array ? node().size : 0; }  // elements or members
        /// The member, or a null value where it is absent or this is null.
        Value operator[](std::string_view key) const;
        /// f(value) for each element; Error where this is no array.
        template <class F>
        void elements(F&& f) const {
            expect(Kind::array);
            for (std::uint32_t i = index_ + 1; i < node().at; i = json_->behind(i)) f(Value(json_, i));
        }
        /// f(key, value) for each member; Error where this is no object.
        template <class F>
        void members(F&& f) const {
            expect(Kind::object);
            for (std::uint32_t i = index_ + 1; i < node().at; i = json_->behind(i + 1))
                f(json_->text_of(i), Value(json_, i + 1));
        }
        [[noreturn]] void fail(std::string_view expected, std::string_view got) const;

      private:
        friend class Json;
        Value(const Json* json, std::uint32_t index) : json_(json), index_(index) {}
        const Node& node() const { return json_->nodes_[index_]; }
        void expect(Kind k) const;
        const Json* json_;
        std::uint32_t index_;
    };

    /// `text` must outlive it.
    Json(std::string_view text, std::string file);
    Json(const Json&) = delete;

    Value root() const { return Value(this, 1); }
    const std::string& file() const { return file_; }

  private:
    void value(int depth);
    void container(int depth);
    Node string();
    Node decoded(const char* begin);
    Node number();
    Node word();
    Node node(Kind kind, std::size_t at, std::size_t size, bool decoded) const;
    void blanks();
    void check_keys(std::uint32_t object);
    std::string path_of(std::uint32_t index) const;
    void parse();
    [[noreturn]] void fail_at(const char* at, std::string_view expected) const;
    [[noreturn]] void fail_here(std::string_view expected) const { fail_at(at_, expected); }

    std::string_view text_;
    std::string file_;
    const char *at_, *end_;
    std::vector<Node, LargePageAllocator<Node>>
        nodes_;  // in order of the text; 0 is the null that absent members are
    std::string arena_;
};

/// Where the plain bytes of a string end among the 16 at p: ones for '"', '\\' and control characters. (On
/// every CPU that we know of a comparison of 16 bytes is one instruction.)
inline auto json_stops(const char* p) {
    using Bytes [[gnu::vector_size(16)]] = std::uint8_t;
    Bytes v;
    std::memcpy(&v, p, sizeof v);
    return (v == '"') | (v == '\\') | (v < 0x20);
}

/// The first such byte at or after p.
const char* json_plain_run(const char* p, const char* end);

/// A string as JSON: quoted, escaped; bytes that are no UTF-8 become U+FFFD.
std::string json_quoted(std::string_view text);

}  // namespace linnet
