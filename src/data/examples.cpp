#include "data/examples.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/fields.h"
#include "base/hash.h"
#include "base/sha256.h"
#include "base/split.h"
#include "data/document_marks.h"
#include "data/documents.h"
#include "data/line_reader.h"

namespace linnet {
namespace {

using nlohmann::json;

bool blank(const std::string& line) {
    return line.find_first_not_of(" \t\r") == line.npos;
}

/// The members that hold an example's prompt and completion.
struct Names {
    std::string prompt = "prompt", completion = "completion";

    explicit Names(const std::vector<std::string>& fields) {
        if (fields.empty()) return;
        if (fields.size() != 2)
            fail(Exit::usage, "", "--fields", "those of prompt and completion",
                 std::to_string(fields.size()));
        prompt = fields[0], completion = fields[1];
    }
};

Example example_of(const json& object, const Names& names, const std::string& path, std::uint64_t number) {
    Example example;
    example.file = path, example.line = number;
    const std::string line = "line " + std::to_string(number);
    if (!object.is_object()) fail_input(path, line, "a JSON object", object.type_name());
    if (object.contains("messages")) {
        example.messages = messages_of(object["messages"], path, line + ", messages");
        const auto answers = [](const ChatMessage& m) { return m.role == "assistant" && !m.content.empty(); };
        if (std::none_of(example.messages.begin(), example.messages.end(), answers))
            fail_input(path, line + ", messages", "an answer of the assistant", "none");
        return example;
    }
    example.prompt = text_member(object, names.prompt.c_str(), path, line + ", ");
    example.completion = text_member(object, names.completion.c_str(), path, line + ", ");
    if (example.completion.empty())
        fail_input(path, line + ", " + names.completion, "a text", "an empty one");
    return example;
}

/// The first value of a file of JSON Lines: null where it has none, discarded where that is no JSON, or
/// longer than lines of examples may be (documents' may be).
json first_object(const std::string& file) {
    LineReader lines(file);
    try {
        for (std::string line; lines.next(line);)
            if (!blank(line)) return parse_or_discard(line);
    } catch (const Error& error) {
        if (error.exit() != Exit::input) throw;
        return json(json::value_t::discarded);
    }
    return nullptr;
}

/// The ids of a text that goes on.
std::vector<TokenId> ids_of(const Tokenizer& tokenizer, std::string_view text, bool continues) {
    EncodeOptions options;
    options.continues = continues;
    return tokenizer.encode(text, options);
}

PackedText encode_chat_example(const Tokenizer& tokenizer, const Example& example, const ChatTemplate& form) {
    std::string system;
    std::vector<ChatTurn> turns;
    // A space at the end of what stands before an answer is the model's to write (chat_parts).
    const bool space = form.assistant.before.ends_with(' ');
    for (const ChatMessage& message : example.messages) {
        if (message.role == "system") system = message.content;
        if (message.role == "user") turns.push_back({message.content, std::nullopt});
        if (message.role != "assistant") continue;
        const std::string text((form.trim || space) ? trimmed(message.content) : message.content);
        turns.back().answer = ChatTurn::Answer{text, ids_of(tokenizer, (space ? " " : "") + text, true)};
    }
    // An empty answer has no part of its own, and what ends the last one is told by what stands behind it.
    while (!turns.empty() && (!turns.back().answer || turns.back().answer->ids.empty())) turns.pop_back();
    const std::vector<ChatPart> parts = chat_parts(form, system, turns);
    std::vector<std::size_t> at;
    PackedText text;
    text.ids = encode_chat(tokenizer, parts, false, &at);
    text.scored.assign(text.ids.size(), 0);
    std::vector<std::size_t> ends;
    for (const ChatPart& part : parts)
        if (part.kind == ChatPart::Kind::written) ends.push_back(at[ends.size()] + part.tokens.size());
    if (ends.empty()) return text;
    if (ends.back() == text.ids.size() && tokenizer.eos()) {  // nothing would tell the model to stop
        text.ids.push_back(*tokenizer.eos());
        text.scored.push_back(0);
    }
    // What ends an answer, as it stands behind the last one: no fewer ids stand behind each.
    const std::vector<TokenId> closing(text.ids.begin() + static_cast<std::ptrdiff_t>(ends.back()),
                                       text.ids.end());
    for (std::size_t i = 0; i < ends.size(); i++) {
        std::size_t end = ends[i];
        for (std::size_t k = 0; k < closing.size() && text.ids[end] == closing[k]; k++) end++;
        std::fill(text.scored.begin() + static_cast<std::ptrdiff_t>(at[i]),
                  text.scored.begin() + static_cast<std::ptrdiff_t>(end), 1);
    }
    return text;
}

/// Adds an example, which must be of the kind of those before.
void take(Example example, Examples& to) {
    const bool chat = !example.messages.empty();
    if (to.list.empty()) to.chats = chat;
    if (chat != to.chats)
        fail_input(
            example.file, "line " + std::to_string(example.line),
            to.chats ? "messages, as in the lines before" : "prompt and completion, as in the lines before",
            chat ? "messages" : "prompt and completion");
    to.bytes += example.prompt.size() + example.completion.size();
    for (const ChatMessage& message : example.messages) to.bytes += message.content.size();
    to.list.push_back(std::move(example));
}

}  // namespace

bool are_examples(const std::vector<std::string>& inputs, const ReadOptions& options,
                  const std::vector<std::string>& fields) {
    const std::string prompt = fields.empty() ? Names({}).prompt : fields[0];
    for (const std::string& file : expand_inputs(inputs, options.except)) {
        if (file == "-" || !reads_as_jsonl(file, options.format)) continue;
        const json object = first_object(file);
        if (object.is_null()) continue;
        if (!object.is_object()) return false;
        if (!fields.empty() && object.contains(prompt)) return true;  // asked for by name
        if (object.contains(options.field)) return false;
        if (object.contains("messages") || object.contains(prompt)) return true;
        if (options.skip_bad || object.empty()) return false;
        std::vector<std::string> found;
        for (const auto& member : object.items()) found.push_back(linnet::quoted(member.key()));
        fail_input(file, "the first object",
                   linnet::quoted(options.field) + ", or " + linnet::quoted(prompt) +
                       " and its completion, or 'messages'",
                   joined(found), "--field names the text's, --fields those of prompt and completion");
    }
    return false;
}

Examples read_examples(const std::vector<std::string>& inputs, const ReadOptions& options,
                       const std::vector<std::string>& fields) {
    const Names names(fields);
    Examples examples;
    Sha256 sum;
    for (const std::string& file : expand_inputs(inputs, options.except)) {
        if (!reads_as_jsonl(file, options.format))
            fail_input(file, "", "JSON Lines, as the other data are", "another file",
                       inputs.size() > 1 ? "with weights, --data PATH=WEIGHT, they are mixed" : "");
        LineReader lines(file);
        for (std::string line; lines.next(line);) {
            if (blank(line)) continue;
            sum.update(line);
            sum.update("\n");
            examples.act_or_skip(options.skip_bad, [&] {
                const json object = parse_json(line, lines.path(), lines.number());
                take(example_of(object, names, lines.path(), lines.number()), examples);
            });
        }
    }
    if (examples.list.empty()) fail_input(inputs[0], "", "at least one example", examples.bad_alone());
    examples.sha256 = sum.hex();
    return examples;
}

std::vector<bool> held_out_examples(const Examples& examples, double fraction) {
    const std::size_t count = examples.list.size();
    std::vector<bool> held(count, false);
    if (count >= many_documents) {
        for (std::size_t i = 0; i < count; i++) {
            const Example& e = examples.list[i];
            std::uint64_t hash = hash_bytes(e.prompt, 1);
            hash = hash_bytes(e.completion, hash);
            for (const ChatMessage& m : e.messages) hash = hash_bytes(m.content, hash);
            held[i] = held_out(hash, fraction);
        }
        const auto out = static_cast<std::size_t>(std::count(held.begin(), held.end(), true));
        if (out > 0 && out < count) return held;
        held.assign(count, false);
    }
    const auto out = static_cast<std::size_t>(std::llround(static_cast<double>(count) * fraction));
    for (std::size_t i = count - std::min(out, count - 1); i < count; i++) held[i] = true;
    return held;
}

PackedText encode_whole(const Tokenizer& tokenizer, std::string_view document) {
    const DocumentMarks marks(tokenizer);
    PackedText text;
    if (marks.begin) text.ids.push_back(*marks.begin);
    tokenizer.encode(document, text.ids);
    if (marks.end) text.ids.push_back(*marks.end);
    text.scored.assign(text.ids.size(), 1);
    return text;
}

PackedText encode_example(const Tokenizer& tokenizer, const Example& example, const ChatTemplate* form) {
    if (!example.messages.empty()) return encode_chat_example(tokenizer, example, *form);
    const DocumentMarks marks(tokenizer);
    PackedText text;
    if (marks.begin) text.ids.push_back(*marks.begin);
    tokenizer.encode(example.prompt, text.ids);
    text.scored.assign(text.ids.size(), 0);
    const std::vector<TokenId> completion = ids_of(tokenizer, example.completion, !example.prompt.empty());
    text.ids.insert(text.ids.end(), completion.begin(), completion.end());
    if (marks.end) text.ids.push_back(*marks.end);
    text.scored.resize(text.ids.size(), 1);
    return text;
}

}  // namespace linnet
