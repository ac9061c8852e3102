// What a conversation does with what is typed: messages, and commands that begin with "/".
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/conversation.h"
#include "commands/generate/settings.h"

namespace linnet {

struct ChatCommand;

class ChatSession {
  public:
    /// All that is handed in by reference must outlive it. `settings` must be resolved, and settings.seed
    /// chosen.
    ChatSession(Conversation& conversation, const Tokenizer& tokenizer, const ChatTemplate& form,
                TextSettings settings, GrammarFiles& files)
        : conversation_(conversation),
          tokenizer_(tokenizer),
          form_(form),
          settings_(std::move(settings)),
          files_(files) {}

    /// Does what a typed text says: a message is answered on stdout, a command is done; a text that begins
    /// with "//" is a message from its second "/" on, and of several lines only /system is a command: what is
    /// pasted may begin with a path. What cannot be done is said on stderr, and nothing has changed. False
    /// where the conversation is to end.
    bool take(const std::string& typed);
    /// Answers one message, as take() does, but passes errors on, which call it `name`.
    void say(const std::string& message, const std::string& name);
    /// Error(Exit::input), by its name, for a text that the vocabulary cannot spell: of the conversation as a
    /// whole no error could tell which text it was.
    void require_spelled(const std::string& name, const std::string& text) const;
    /// The same for each message of a file.
    void require_spelled(const std::string& file, const std::vector<ChatMessage>& messages) const;
    /// What was loaded: "2 turns".
    std::string loaded() const;

  private:
    friend struct ChatCommand;
    using Ask = std::function<ChatReply(const GenerateOptions&, const Emit&)>;
    void help() const;
    void system(const std::string& argument);
    void reset();
    void undo();
    void retry();
    void save(const std::string& argument);
    void load(const std::string& argument);
    void set(const std::string& argument);
    void show_settings();
    void change(const std::string& name, const std::string& value);
    void command(const ChatCommand& command, const std::string& typed, const std::string& argument);
    void answer(const Ask& ask);
    void say_how_it_ended(const ChatReply& reply) const;

    Conversation& conversation_;
    const Tokenizer& tokenizer_;
    const ChatTemplate& form_;
    TextSettings settings_;
    GrammarFiles& files_;
    std::int64_t answers_ = 0;  // since the seed was set: each has random numbers of its own
    bool ended_ = false;
};

/// Of text_fields(): answers are printed without probabilities.
inline constexpr std::string_view unused_setting = "logprobs";

/// "/help", "/system", … and their other names: for help and tests.
std::vector<std::string> chat_command_names();

}  // namespace linnet
