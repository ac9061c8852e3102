// A JSON file as a tree (simdjson's), with a path to every value for messages, and with repeated keys
// refused.
#pragma once
#include <simdjson.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace linnet {

/// Parsed whole; Error(Exit::input) with line and column where it is no JSON object (RFC 8259), is nested
/// deeper than 100, or with the object's path where one repeats a key.
class Json {
  public:
    enum class Kind : std::uint8_t { null, boolean, number, string, array, object };

    /// A value; cheap to copy, valid as long as its Json.
    class Value {
      public:
        Kind kind() const;
        bool is(Kind k) const { return kind() == k; }
        bool is_null() const { return is(Kind::null); }
        /// Where it stands, for messages: "model.vocab[3]".
        std::string path() const { return json_->path_of(place_); }
        const std::string& file() const { return json_->file_; }

        // Checked: a wrong kind is an Error that names the path.
        bool boolean() const;
        double number() const;
        std::int64_t integer(std::int64_t min, std::int64_t max) const;
        std::string_view string() const;

        std::size_t size() const;  // elements or members
        /// Whether it is an array of two strings, and these.
        bool is_pair(std::string_view& first, std::string_view& second) const;
        /// The member, or a null value where it is absent or this is null.
        Value operator[](std::string_view key) const;
        /// f(value) for each element; Error where this is no array.
        template <class F>
        void elements(F&& f) const {
            expect(Kind::array);
            const std::uint32_t parent = json_->keep(place_);
            std::uint32_t index = 0;
            for (simdjson::dom::element e : simdjson::dom::array(element_))
                f(Value(json_, e, {parent, index++, {}}));
        }
        /// f(key, value) for each member; Error where this is no object.
        template <class F>
        void members(F&& f) const {
            expect(Kind::object);
            const std::uint32_t parent = json_->keep(place_);
            for (auto [key, e] : simdjson::dom::object(element_)) f(key, Value(json_, e, {parent, 0, key}));
        }
        [[noreturn]] void fail(std::string_view expected, std::string_view got) const;

      private:
        friend class Json;
        struct Place {
            std::uint32_t parent;  // of places_, from 1; 0: the root itself
            std::uint32_t index;   // of an array's element
            std::string_view key;  // of a member; no data(): of an element
        };
        Value(const Json* json, simdjson::dom::element element, Place place)
            : json_(json), element_(element), is_there_(true), place_(place) {}
        Value(const Json* json, Place place) : json_(json), place_(place) {}  // absent
        void expect(Kind k) const;
        const Json* json_;
        simdjson::dom::element element_;
        bool is_there_ = false;
        Place place_;
    };

    /// `text` must outlive it.
    Json(std::string_view text, std::string file);
    Json(const Json&) = delete;

    Value root() const { return {this, root_, {0, 0, {}}}; }
    const std::string& file() const { return file_; }

  private:
    [[noreturn]] void fail_parsing(std::string_view text, simdjson::error_code code) const;
    void check_keys(simdjson::dom::element element, const Value::Place& place) const;
    std::string path_of(Value::Place place) const;
    std::uint32_t keep(const Value::Place& place) const {
        places_.push_back(place);
        return static_cast<std::uint32_t>(places_.size());
    }

    std::string file_;
    simdjson::dom::parser parser_;
    simdjson::dom::element root_;
    // Of the values whose members or elements were asked for; a child names its parent by number, from 1.
    mutable std::vector<Value::Place> places_;
};

/// A string as JSON: quoted, escaped; bytes that are no UTF-8 become U+FFFD.
std::string json_quoted(std::string_view text);

}  // namespace linnet
