// Examples to learn answers from: JSON Lines with "prompt" and "completion", or with chat "messages".
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/document_reader.h"
#include "data/packing.h"
#include "data/skipped.h"
#include "text/chat/messages.h"
#include "text/chat/template.h"
#include "text/tokenizer.h"

namespace linnet {

/// A line: a prompt and its completion, or a conversation.
struct Example {
    std::string prompt, completion;
    std::vector<ChatMessage> messages;  // where there are some, the two above are empty
    std::string file;
    std::uint64_t line = 0;

    std::string place() const { return file + ": line " + std::to_string(line); }  // for an error
};

struct Examples : Skipped {
    std::vector<Example> list;
    bool chats = false;       // else pairs
    std::uint64_t bytes = 0;  // of text
    std::string sha256;       // of the lines
};

/// Whether the inputs are JSON Lines of examples, by the members of the first object. `fields`: what a prompt
/// and its completion are called; empty: so. Error(Exit::input) where it has neither those nor a text.
bool are_examples(const std::vector<std::string>& inputs, const ReadOptions& options,
                  const std::vector<std::string>& fields = {});

/// All of them. Errors name file and line: no object, no such members, roles that take no turns, both kinds;
/// with `skip_bad` such lines are counted instead.
Examples read_examples(const std::vector<std::string>& inputs, const ReadOptions& options,
                       const std::vector<std::string>& fields = {});

/// Which are held out, of `fraction` of them: many by a hash of each, so that equal ones lie on one side; of
/// few the last ones.
std::vector<bool> held_out_examples(const Examples& examples, double fraction);

/// A document, all of which is to be learned, between its begin and end tokens.
PackedText encode_whole(const Tokenizer& tokenizer, std::string_view document);
/// The ids of an example, and which of them are to be learned: the completion with its end token; in a
/// conversation each answer with what ends it. `form` is for conversations.
PackedText encode_example(const Tokenizer& tokenizer, const Example& example, const ChatTemplate* form);

}  // namespace linnet
