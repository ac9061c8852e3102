// Inputs to documents: files, folders and stdin; plain text or JSON Lines; plain, gzip or Zstandard.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/skipped.h"

namespace linnet {

class ByteSource;
class JsonScanner;

struct ReadOptions {
    std::string format =
        "auto";  // "text", "jsonl"; auto: by the name (.jsonl and .ndjson, also before .gz and .zst)
    std::string field = "text";  // of a JSON object that holds the document
    std::string separator;       // between the documents of a text file; empty: a file is a document
    // Bytes that are no UTF-8: "error", "replace" (each by U+FFFD), "keep" (not in JSON, which is UTF-8).
    std::string invalid = "error";
    std::string except;     // a folder that is not entered where it lies in an input: the output
    bool skip_bad = false;  // count bad documents instead of stopping at the first
    std::size_t piece = std::size_t{1} << 20;  // longer documents come in pieces of about this many bytes …
    std::size_t longest = std::size_t{256} << 20;  // … but what cannot be cut must not be longer than this
    /// The first place at or after `from` where a document may be cut, or its size where there is none.
    std::function<std::size_t(std::string_view text, std::size_t from)> cut;
};

inline constexpr std::size_t hashed_bytes = std::size_t{1} << 16;  // of a document, for DocumentPart::hash

/// A document or a piece of one: [begin, end) of the text it was appended to.
struct DocumentPart {
    std::size_t begin = 0, end = 0;
    bool first = true, last = true;  // a part may be empty where only its `last` is news
    std::uint64_t hash = 0;          // of the document's first 64 KiB (the same in all its parts)
    std::uint64_t number = 0;        // of the document, from 1, counted with the bad ones
};

/// All regular files that `paths` name, in order; a folder stands for the files below it, sorted by path,
/// without those whose names begin with a dot and those below `except`. "-" is stdin. Error(Exit::io) for
/// what is not there.
std::vector<std::string> expand_inputs(const std::vector<std::string>& paths, const std::string& except = "");

/// Whether a file's name says that it is compressed.
bool named_as_packed(std::string_view path);
/// Whether a file is read as JSON Lines: `format` says so ("jsonl"), or ("auto") its name.
bool reads_as_jsonl(std::string_view path, std::string_view format);

/// Documents in order. What it yields depends on the files' bytes and the options alone. Documents are valid
/// UTF-8 without a leading byte-order mark; empty ones are left out. Errors name file and line (jsonl) or
/// byte (text).
class DocumentReader {
  public:
    DocumentReader(std::vector<std::string> files, ReadOptions options);
    ~DocumentReader();

    /// Appends the next part to `text`; false after the last.
    bool next(std::string& text, DocumentPart& part);

    const Skipped& skipped() const { return skipped_; }   // bad documents
    std::uint64_t bytes_read() const;                     // of the files, compressed or not
    std::uint64_t bytes_total() const { return total_; }  // 0: unknown

  private:
    bool open_next();
    bool next_line(std::string& text, DocumentPart& part);
    bool next_text(std::string& text, DocumentPart& part);
    bool take(std::string& text, DocumentPart& part, std::size_t size, std::size_t drop, bool last);
    bool fill(std::size_t size);
    void bad(const std::string& line);
    std::string_view ahead() const { return std::string_view(buffer_).substr(start_); }
    void drop(std::size_t n);

    std::vector<std::string> files_;
    ReadOptions options_;
    std::size_t file_ = 0;  // files opened so far
    std::string path_;
    std::unique_ptr<ByteSource> source_;
    std::unique_ptr<JsonScanner> scanner_;
    std::string repaired_;  // a line that was no UTF-8
    bool jsonl_ = false, ended_ = true;
    std::string buffer_;  // from start_: bytes read and not yet used
    std::size_t start_ = 0, scanned_ = 0;
    std::uint64_t offset_ = 0, line_ = 0;     // of buffer_[start_] in the (decompressed) file
    bool inside_ = false, dropping_ = false;  // a long document has begun; its rest is passed over
    std::uint64_t hash_ = 0, done_bytes_ = 0, total_ = 0;
    std::uint64_t number_ = 0;  // documents that have begun, bad ones, too
    Skipped skipped_;
};

}  // namespace linnet
