#include "commands/measured_text.h"

#include <algorithm>

#include "base/error.h"
#include "base/processors.h"
#include "base/terminal.h"
#include "commands/text_input.h"
#include "data/batches.h"
#include "data/binary_check.h"
#include "data/examples.h"
#include "data/utf8_check.h"
#include "text/naming.h"
#include "text/unicode/unicode.h"

namespace linnet {
namespace {

/// Whether the bytes begin as a text in UTF-8. gzip and Zstandard data do not.
bool begins_as_text(std::string_view bytes) {
    constexpr std::size_t looked_at = 4096, longest_character = 4;
    const std::string_view head = bytes.substr(0, looked_at);
    const bool cut = bytes.size() > head.size();  // perhaps within a character
    return valid_utf8_prefix(head) + (cut ? longest_character : 1) > head.size() && binary_kind(head).empty();
}

/// Training learns only the answers in such lines; a measure of the whole text would say nothing of them.
void refuse_examples(const std::string& path, ReadOptions read) {
    read.skip_bad = true;  // other objects are refused by what reads them, line by line
    if (are_examples({path}, read))
        fail_input(path, "", "texts", "conversations, or prompts with completions",
                   "finetune reports the loss of their answers; --field NAME takes one member as the text");
}

}  // namespace

MeasuredText::MeasuredText(const std::string& path, ReadOptions read) : name_(input_name(path)) {
    if (take_plain(path, read)) return;
    refuse_examples(path, read);
    read.invalid = "keep";
    read_ = read_documents({path}, std::move(read));
    if (read_.skipped > 0) note(read_.told("document"));
    for (std::size_t i = 0; i < read_.count(); i++) documents_.push_back(read_[i]);
}

bool MeasuredText::take_plain(const std::string& path, const ReadOptions& read) {
    if (path == "-" || reads_as_jsonl(path, read.format) || !read.separator.empty() || named_as_packed(path))
        return false;
    piped_ = read_pipe(path);
    if (piped_.empty()) file_ = MappedFile(path);
    std::string_view text = piped_.empty() ? file_.text() : std::string_view(piped_);
    refuse_wide_encoding(name_, text);
    if (!begins_as_text(text)) return false;
    if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
    documents_ = {text};
    return true;
}

std::vector<TokenId> encode_for_windows(const Tokenizer& tokenizer, const MeasuredText& text, int threads) {
    threads = threads_or_cores(threads);
    std::vector<TokenId> ids;
    if (text.documents().size() == 1) {
        EncodeOptions encode;
        encode.threads = threads;
        naming(text.name(), [&] { tokenizer.encode(text.documents()[0], ids, encode); });
        return ids;
    }
    TextSplit split;
    split.validation = text.documents();
    const TokenSource source = TokenSource::from_documents(split, true, tokenizer, threads, text.name());
    ids.resize(static_cast<std::size_t>(source.size(DataSplit::validation)));
    if (ids.size() < 2) return ids;  // less than a window
    std::vector<TokenId> next(ids.size() - 1);
    source.window(DataSplit::validation, 0, std::span(ids).first(next.size()), next);
    ids.back() = next.back();
    return ids;
}

std::int64_t window_size(std::int64_t asked, std::int64_t context, std::size_t tokens) {
    if (asked > 0) return asked;
    return std::min(context, std::max<std::int64_t>(2, static_cast<std::int64_t>(tokens)));
}

void require_window(const MeasuredText& text, std::size_t tokens, std::int64_t size) {
    if (tokens < static_cast<std::size_t>(size))
        fail_input(text.name(), "", "a text of at least one window, " + std::to_string(size) + " tokens",
                   std::to_string(tokens) + (tokens == 1 ? " token" : " tokens"),
                   size > 2 ? "--ctx makes windows smaller" : "");
}

}  // namespace linnet
