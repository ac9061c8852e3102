#include "data/document_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/terminal.h"
#include "data/binary_check.h"
#include "data/byte_source.h"
#include "data/utf8_check.h"
#include "text/files/json_scanner.h"
#include "text/unicode/unicode.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

/// Files below a folder; folders behind symbolic links are not entered (they may lead back up).
void list_folder(const std::string& folder, const std::string& except, std::vector<std::string>& out) {
    std::error_code error;
    fs::recursive_directory_iterator it(folder, error), end;
    if (error) fail_errno(folder, "", error.value());
    while (it != end) {
        const fs::directory_entry& entry = *it;
        bool hidden = entry.path().filename().string().starts_with('.');
        if (entry.is_directory(error) &&
            (hidden || (!except.empty() && fs::equivalent(entry.path(), except, error))))
            it.disable_recursion_pending();
        if (!hidden && entry.is_regular_file(error)) out.push_back(entry.path().string());
        it.increment(error);
        if (error) fail_errno(folder, "", error.value());
    }
}

}  // namespace

bool named_as_packed(std::string_view path) {
    return std::ranges::any_of(packed_endings,
                               [&](const PackedEnding& packed) { return path.ends_with(packed.ending); });
}

bool reads_as_jsonl(std::string_view path, std::string_view format) {
    if (format != "auto") return format == "jsonl";
    for (const PackedEnding& packed : packed_endings)
        if (path.ends_with(packed.ending)) path.remove_suffix(packed.ending.size());
    return path.ends_with(".jsonl") || path.ends_with(".ndjson");
}

std::vector<std::string> expand_inputs(const std::vector<std::string>& paths, const std::string& except) {
    std::vector<std::string> files;
    for (const std::string& path : paths) {
        struct stat status {};
        if (path != "-" && ::stat(path.c_str(), &status) != 0) fail_errno(path, "", errno);
        if (path == "-" || !S_ISDIR(status.st_mode)) {
            files.push_back(path);
            continue;
        }
        std::size_t before = files.size();
        list_folder(path, except, files);
        std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
        if (files.size() == before) fail_input(path, "", "a folder with files in it", "none");
    }
    return files;
}

DocumentReader::DocumentReader(std::vector<std::string> files, ReadOptions options)
    : files_(std::move(files)), options_(std::move(options)), scanner_(std::make_unique<JsonScanner>()) {
    for (const std::string& path : files_) {
        struct stat status {};
        if (path == "-" || ::stat(path.c_str(), &status) != 0) {
            total_ = 0;
            break;
        }
        total_ += static_cast<std::uint64_t>(status.st_size);
    }
}

DocumentReader::~DocumentReader() = default;

std::uint64_t DocumentReader::bytes_read() const {
    return done_bytes_ + (source_ ? source_->bytes_read() : 0);
}

/// Reads until `size` bytes are ahead or the file ends; whether they are there.
bool DocumentReader::fill(std::size_t size) {
    constexpr std::size_t step = std::size_t{1} << 16;
    while (buffer_.size() - start_ < size && !ended_) {
        if (start_ >= std::max(step, buffer_.size() / 2)) {
            buffer_.erase(0, start_);
            start_ = 0;
        }
        std::size_t old = buffer_.size();
        buffer_.resize(old + step);
        std::size_t n = source_->read(buffer_.data() + old, step);
        buffer_.resize(old + n);
        ended_ = n == 0;
    }
    return buffer_.size() - start_ >= size;
}

void DocumentReader::drop(std::size_t n) {
    start_ += n;
    offset_ += n;
    scanned_ = 0;
}

bool DocumentReader::open_next() {
    if (source_) done_bytes_ += source_->bytes_read();
    source_.reset();
    if (file_ == files_.size()) return false;
    path_ = files_[file_++];
    source_ = open_source(path_);
    jsonl_ = reads_as_jsonl(path_, options_.format);
    path_ = input_name(path_);
    buffer_.clear();
    start_ = scanned_ = 0;
    offset_ = line_ = 0;
    ended_ = inside_ = dropping_ = false;
    fill(4096);
    std::string_view kind = wide_encoding(ahead());
    if (!kind.empty() && !options_.skip_bad) refuse_wide_encoding(path_, ahead());  // which says the way out
    if (kind.empty()) kind = binary_kind(ahead());
    if (!kind.empty()) {
        bad(path_ + ": expected UTF-8 text, got " + std::string(kind));
        number_++;
        drop(ahead().size());
        ended_ = true;
        return true;
    }
    if (ahead().starts_with(byte_order_mark)) drop(byte_order_mark.size());
    return true;
}

bool DocumentReader::next(std::string& text, DocumentPart& part) {
    for (;;) {
        if (source_ && (jsonl_ ? next_line(text, part) : next_text(text, part))) return true;
        if (!open_next()) return false;
    }
}

/// A bad document: counted where that was asked for, else the error.
void DocumentReader::bad(const std::string& line) {
    if (!options_.skip_bad)
        throw Error(Exit::input, printable(line) + " (--skip-bad passes over such documents)");
    skipped_.skip(printable(line));
}

bool DocumentReader::next_line(std::string& text, DocumentPart& part) {
    for (;;) {
        std::size_t newline = std::string_view::npos;
        while ((newline = ahead().find('\n', scanned_)) == std::string_view::npos && !ended_) {
            scanned_ = ahead().size();
            if (scanned_ > options_.longest)
                fail_input(path_, "line " + std::to_string(line_ + 1),
                           "at most " + std::to_string(options_.longest >> 20) + " MiB per line", "more");
            fill(scanned_ + 1);
        }
        std::string_view line = ahead().substr(0, newline);
        if (line.empty() && newline == std::string_view::npos) return false;
        line_++;
        std::size_t size = line.size() + (newline == std::string_view::npos ? 0 : 1);
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
            drop(size);
            continue;
        }
        auto where = [&](std::size_t at) {
            return path_ + ": line " + std::to_string(line_) + ", byte " + std::to_string(at + 1) +
                   ": expected ";
        };
        part = {};
        part.begin = text.size();
        JsonFault fault;
        bool is_good = scanner_->extract(line, options_.field, text, fault);
        if (!is_good && fault.utf8 && options_.invalid == "replace") {
            repaired_.clear();
            append_repaired(line, repaired_);
            line = repaired_;
            is_good = scanner_->extract(line, options_.field, text, fault);
        }
        if (!is_good) {
            bad(where(fault.at) + fault.expected + ", got " +
                (fault.utf8 ? utf8_fault_name(line, fault.at) : fault.got));
            number_++;
            drop(size);
            continue;
        }
        std::string_view document = std::string_view(text).substr(part.begin);
        drop(size);
        if (document.empty()) continue;
        part.end = text.size();
        part.hash = hash_bytes(document.substr(0, hashed_bytes));
        part.number = ++number_;
        return true;
    }
}

/// Hands out `size` bytes ahead as a part and drops `dropped` in all. False where there is nothing to hand
/// out.
bool DocumentReader::take(std::string& text, DocumentPart& part, std::size_t size, std::size_t dropped,
                          bool last) {
    part = {};
    part.begin = text.size();
    part.first = !inside_;
    part.last = last;
    std::string_view piece = ahead().substr(0, size);
    bool keep = !dropping_;
    std::size_t fault = keep && options_.invalid != "keep" ? valid_utf8_prefix(piece) : piece.size();
    bool repair = fault < piece.size() && options_.invalid == "replace";
    if (fault < piece.size() && !repair) {
        bad(path_ + ": byte " + std::to_string(offset_ + fault) + ": expected UTF-8, got " +
            utf8_fault_name(piece, fault));
        number_ += part.first;
        // What was handed out of a long document stays; its rest is passed over.
        dropping_ = true;
        keep = inside_;
        piece = {};
        part.last = true;
    }
    if (keep) {
        if (part.first) hash_ = hash_bytes(piece.substr(0, hashed_bytes));
        if (repair)
            append_repaired(piece, text);
        else
            text.append(piece);
    }
    part.end = text.size();
    part.hash = hash_;
    inside_ = !last && (inside_ || !dropping_);
    if (last) dropping_ = false;
    drop(dropped);
    const bool some = keep && !(part.first && part.last && part.begin == part.end);
    number_ += some && part.first;
    part.number = number_;
    return some;
}

bool DocumentReader::next_text(std::string& text, DocumentPart& part) {
    const std::string& separator = options_.separator;
    for (;;) {
        std::string_view view = ahead();
        std::size_t end = separator.empty() ? std::string_view::npos : view.find(separator, scanned_);
        bool found = end != std::string_view::npos, whole = found || ended_;
        // Bytes that surely belong to this document: a separator may begin in the last few.
        std::size_t sure = found ? end : view.size();
        if (!whole && !separator.empty())
            sure = std::max(view.size(), separator.size() - 1) - (separator.size() - 1);
        if (!found) scanned_ = sure;
        if (whole && sure < 2 * options_.piece) {
            if (view.empty() && !inside_) return false;
            std::size_t dropped = sure + (found ? separator.size() : 0);
            if (take(text, part, sure, dropped, true)) return true;
            if (dropped == 0) return false;
            continue;
        }
        if (sure >= 2 * options_.piece) {
            std::size_t cut = options_.cut ? options_.cut(view.substr(0, sure), options_.piece) : sure;
            if (cut < sure) {
                if (take(text, part, cut, cut, false)) return true;
                continue;
            }
            if (sure > options_.longest)
                fail_input(path_, "byte " + std::to_string(offset_),
                           "a document, or a place to cut it, within " +
                               std::to_string(options_.longest >> 20) + " MiB",
                           "none", "this tokenizer reads such a text only whole");
            if (whole) {
                if (take(text, part, sure, sure + (found ? separator.size() : 0), true)) return true;
                continue;
            }
        }
        fill(view.size() * 2 + 2 * options_.piece);
    }
}

}  // namespace linnet
