// Schemas that hold at the same time, as one.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace linnet {

using Schema = nlohmann::ordered_json;

/// What is known of a keyword of JSON Schema.
struct SchemaWord {
    const char* name;
    const char* kind;  // of values that it is about: "object", "array", "string", "number"; "": of all;
                       // "note": says nothing of them
};
const SchemaWord* find_word(std::string_view name);

/// A file's schemas, looked up and merged. Errors are Error(Exit::input) that name the file and a path
/// ("#/…").
class SchemaFile {
  public:
    SchemaFile(Schema root, std::string file) : root_(std::move(root)), file_(std::move(file)) {}
    [[noreturn]] void fail(const std::string& path, std::string_view expected, std::string_view got,
                           std::string_view hint = {}) const;

    const Schema& root() const { return root_; }
    /// What "#/…" leads to.
    const Schema& resolve(const std::string& reference, const std::string& path) const;
    /// An object or a boolean without allOf, and without $ref beside other keywords (alone it stays), whose
    /// keywords are all known and of the right kind.
    Schema flat(const Schema& schema, const std::string& path, int depth = 0) const;
    /// Both hold. `a` and `b` are flat; a reference is followed.
    Schema both(const Schema& a, const Schema& b, const std::string& path, int depth = 0) const;
    /// No value can fulfil both, which is plain from their types, their constants, or a member that both
    /// require.
    bool disjoint(const Schema& a, const Schema& b, const std::string& path, int depth = 0) const;

    /// The types that a flat schema allows by `type`, `const` and `enum` (all where it has none of them).
    static std::vector<std::string> types(const Schema& schema);
    static bool is_type(const Schema& value, std::string_view type);

  private:
    std::string percent_decoded(const std::string& reference, const std::string& path) const;
    void count_step(const std::string& path) const;
    void check_words(const Schema& schema, const std::string& path) const;
    Schema both_members(const Schema& a, const Schema& b, const std::string& path, int depth) const;
    void add_members(Schema& out, const Schema& of, const Schema& other, const std::string& path,
                     int depth) const;
    Schema both_words(const std::string& word, const Schema& a, const Schema& b, const std::string& path,
                      int depth) const;
    Schema root_;
    std::string file_;
    mutable std::int64_t steps_ = 0;  // of merging, so far
};

/// A step of a path: "~" and "/" are spelled ~0 and ~1 (RFC 6901).
std::string path_to(const std::string& path, std::string_view step);

}  // namespace linnet
