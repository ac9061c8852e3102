#include "chat/conversation.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace linnet {

Conversation::Conversation(LogitSource& source, const Tokenizer& tokenizer, const ChatTemplate& form)
    : source_(source), tokenizer_(tokenizer), form_(form), generator_(source, tokenizer) {
    generator_.keep_written();
}

std::vector<TokenId> Conversation::ids(bool special) const {
    const auto seen = std::span<const ChatTurn>(turns_).subspan(first_);
    std::vector<TokenId> tokens = encode_chat(tokenizer_, chat_parts(form_, system_, seen), special);
    return tokens.empty() ? encode_prompt(tokenizer_, "", false) : tokens;
}

/// The ids of what the model sees, with room behind them for `more` tokens and one: where there is none,
/// without the oldest turns, so many that at most half of the context is taken. They are too many where the
/// last turn alone is.
std::vector<TokenId> Conversation::fitting(std::size_t more, bool special) {
    const auto context = static_cast<std::size_t>(source_.context());
    std::vector<TokenId> tokens = ids(special);
    if (tokens.size() + more < context) return tokens;
    while (first_ + 1 < turns_.size() && tokens.size() + more > context / 2) {
        first_++;
        tokens = ids(special);
    }
    return tokens;
}

/// The answer of the last turn. What ended before a stop string is encoded when it is read the next time: the
/// tokens that were written have the stop string, too.
void Conversation::keep(const Generated& written, std::string text) {
    ChatTurn::Answer answer{std::move(text), {}};
    if (written.end != GenerateEnd::stop) answer.ids = written.ids;
    if (written.end == GenerateEnd::end_token && !answer.ids.empty()) answer.ids.pop_back();
    if (form_.trim || form_.assistant.before.ends_with(' ')) answer.text = trimmed(answer.text);
    turns_.back().answer = std::move(answer);
}

ChatReply Conversation::answer(const GenerateOptions& options, const Emit& emit, bool special) {
    ChatReply reply;
    const std::size_t before = first_;
    const std::int64_t read = generator_.totals().read;
    Request request;
    request.prompt = fitting(0, special);
    if (request.prompt.size() >= static_cast<std::size_t>(source_.context()))
        fail_input(
            "", "message",
            "with the system text fewer tokens than the context's " + std::to_string(source_.context()),
            std::to_string(request.prompt.size()), "--ctx raises it, where the model has more");
    request.options = options;
    request.options.shift = false;
    request.options.ends = end_tokens(tokenizer_, form_);
    request.options.stops.insert(request.options.stops.end(), form_.ends.begin(), form_.ends.end());
    std::string text;
    request.emit = [&](std::optional<TokenId> id, std::string_view piece) {
        text += piece;
        emit(id, piece);
    };
    request.make_room = [&](const Continuation& answer) {
        const auto written = std::span<const TokenId>(answer.text()).subspan(answer.prompt_size());
        std::vector<TokenId> tokens = fitting(written.size(), special);
        tokens.insert(tokens.end(), written.begin(), written.end());
        if (tokens.size() >= static_cast<std::size_t>(source_.context())) tokens.clear();
        return tokens;
    };
    Generated written;
    written.end = GenerateEnd::interrupted;  // where a signal comes before it begins
    request.done = [&](const Generated& result) { written = result; };
    generator_.run({request});
    reply.end = written.end;
    reply.written = static_cast<std::int64_t>(written.ids.size());
    reply.read = generator_.totals().read - read;
    reply.forgotten = first_ - std::min(first_, before);
    if (reply.end != GenerateEnd::interrupted || reply.written > 0) keep(written, std::move(text));
    return reply;
}

/// Answers the last turn. Where no answer comes of it all is as `before` says: its turn goes, or has the
/// answer that it had.
ChatReply Conversation::attempt(const Before& before, const GenerateOptions& options, const Emit& emit,
                                bool special) {
    auto restore = [&] {
        first_ = before.first;
        turns_.resize(before.turns);
        if (before.turns > 0) turns_.back().answer = before.answer;
    };
    try {
        ChatReply reply = answer(options, emit, special);
        if (!turns_.back().answer) restore();
        return reply;
    } catch (...) {
        restore();
        throw;
    }
}

ChatReply Conversation::say(std::string message, const GenerateOptions& options, const Emit& emit,
                            bool special) {
    const Before before{first_, turns_.size(), turns_.empty() ? std::nullopt : turns_.back().answer};
    if (!turns_.empty() && !turns_.back().answer) turns_.back().answer.emplace();  // of a file that ended so
    turns_.push_back({std::move(message), std::nullopt});
    return attempt(before, options, emit, special);
}

ChatReply Conversation::retry(const GenerateOptions& options, const Emit& emit, bool special) {
    if (turns_.empty()) fail_input("", "conversation", "a message to answer", "none");
    const Before before{first_, turns_.size(), std::exchange(turns_.back().answer, std::nullopt)};
    first_ = std::min(first_, turns_.size() - 1);
    return attempt(before, options, emit, special);
}

std::optional<std::string> Conversation::undo() {
    if (turns_.empty()) return std::nullopt;
    std::string message = std::move(turns_.back().user);
    turns_.pop_back();
    if (first_ >= turns_.size()) first_ = 0;  // all that is left was left out before
    return message;
}

void Conversation::reset() {
    turns_.clear();
    first_ = 0;
}

std::vector<ChatMessage> Conversation::messages() const {
    std::vector<ChatMessage> list;
    if (!system_.empty()) list.push_back({"system", system_});
    for (const ChatTurn& turn : turns_) {
        list.push_back({"user", turn.user});
        if (turn.answer) list.push_back({"assistant", turn.answer->text});
    }
    return list;
}

void Conversation::set_messages(const std::vector<ChatMessage>& messages) {
    reset();
    for (const ChatMessage& message : messages) {
        if (message.role == "system") system_ = message.content;
        if (message.role == "user") turns_.push_back({message.content, std::nullopt});
        if (message.role == "assistant") turns_.back().answer = ChatTurn::Answer{message.content, {}};
    }
}

}  // namespace linnet
