// A conversation with a model: turns over one sequence, of which only what is new is read.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chat/messages.h"
#include "generate/generator.h"
#include "text/chat/template.h"

namespace linnet {

/// How an answer went.
struct ChatReply {
    GenerateEnd end = GenerateEnd::length;
    std::size_t forgotten = 0;  // turns that were left out since the last answer, for want of room
    std::int64_t read = 0;      // tokens that were read for it; all others were held
    std::int64_t written = 0;
};

/// Uses slot 0 of the source. Source, tokenizer and template must outlive it.
class Conversation {
  public:
    Conversation(LogitSource& source, const Tokenizer& tokenizer, const ChatTemplate& form);

    /// Adds a message, and the model's answer to it. options.tokens, .sampler and .stops are the caller's;
    /// `special`: a message that spells a control token is one. An answer that was interrupted is kept as far
    /// as it came. Where nothing of it came (reply.written 0 and interrupted, or an Error), the message is
    /// gone, too. Error(Exit::input) where the system text and the message do not fit the context.
    ChatReply say(std::string message, const GenerateOptions& options, const Emit& emit,
                  bool special = false);
    /// Answers the last message once more; the answer that it had stays only where none comes.
    ChatReply retry(const GenerateOptions& options, const Emit& emit, bool special = false);
    /// Takes the last message and its answer back. The message, or nothing where there is none.
    std::optional<std::string> undo();
    /// Forgets all turns; the system text stays.
    void reset();

    const std::string& system() const { return system_; }
    void set_system(std::string text) { system_ = std::move(text); }
    /// All of it, also what the model no longer sees.
    std::vector<ChatMessage> messages() const;
    /// A list as parse_messages() checks it. Where its first is no system message the system text stays.
    void set_messages(const std::vector<ChatMessage>& messages);

    std::span<const ChatTurn> turns() const { return turns_; }
    std::size_t forgotten() const { return first_; }  // turns that the model no longer sees

  private:
    std::vector<TokenId> ids(bool special) const;
    std::vector<TokenId> fitting(std::size_t more, bool special);
    void keep(const Generated& written, std::string text);
    ChatReply answer(const GenerateOptions& options, const Emit& emit, bool special);
    struct Before {
        std::size_t first, turns;
        std::optional<ChatTurn::Answer> answer;  // of the last turn
    };
    ChatReply attempt(const Before& before, const GenerateOptions& options, const Emit& emit, bool special);

    LogitSource& source_;
    const Tokenizer& tokenizer_;
    const ChatTemplate& form_;
    Generator generator_;
    std::string system_;
    std::vector<ChatTurn> turns_;
    std::size_t first_ = 0;  // of the turns that the model sees
};

}  // namespace linnet
