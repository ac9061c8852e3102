// Turns over one sequence, with a model that answers by a rule.
#include <doctest/doctest.h>

#include "base/error.h"
#include "chat/conversation.h"
#include "generate/fakes.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// "U" and "A" begin messages, "." ends an answer, "<" ends the text; letters are words.
const std::vector<std::string> pieces = {"<", "U", "A", ".", "S", "x", "y",
                                         "z", "a", "b", "c", "d", "e", "f"};
enum : TokenId { end, user, assistant, dot, system_mark, x, y, z, a, b };

struct Talk {
    explicit Talk(std::int64_t context = 100, const std::string& answer = "ab<", const char* ends = "\"\"")
        : tokenizer(pieces),
          form(parse_chat_template(R"({"system": {"before": "S"}, "user": {"before": "U"},
                                     "assistant": {"before": "A", "after": "."}, "ends": )" +
                                       std::string(ends) + "}",
                                   "form")),
          source(context, static_cast<TokenId>(pieces.size()),
                 [this](const std::vector<TokenId>& held) {
                     // The answer, from the last "A" on.
                     std::size_t at = held.size();
                     while (held.at(at - 1) != assistant) at--;
                     return recital.at((held.size() - at) % recital.size());
                 }),
          conversation(source, tokenizer, form) {
        tokenizer.end = end;
        recital = tokenizer.Tokenizer::encode(answer);
        options.tokens = -1;
        options.sampler.temperature = 0;
    }
    ChatReply say(const std::string& text) {
        said.clear();
        return conversation.say(text, options, emit);
    }
    std::string held() const {
        std::string text;
        for (TokenId id : source.held) text += pieces.at(static_cast<std::size_t>(id));
        return text;
    }

    FakeTokenizer tokenizer;
    ChatTemplate form;
    std::vector<TokenId> recital;
    FakeSource source;
    Conversation conversation;
    GenerateOptions options;
    std::string said;
    Emit emit = [this](std::optional<TokenId>, std::string_view text) { said += text; };
};

}  // namespace

TEST_CASE("a conversation reads only what is new") {
    Talk talk;
    talk.conversation.set_system("x");
    ChatReply reply = talk.say("y");
    CHECK(talk.said == "ab");
    CHECK(reply.end == GenerateEnd::end_token);
    CHECK(reply.read == 5);  // S x U y A
    CHECK(talk.held() == "SxUyAab");
    reply = talk.say("z");
    CHECK(reply.read == 4);  // . U z A
    CHECK(talk.held() == "SxUyAab.UzAab");
    CHECK(talk.conversation.messages() ==
          std::vector<ChatMessage>{
              {"system", "x"}, {"user", "y"}, {"assistant", "ab"}, {"user", "z"}, {"assistant", "ab"}});
    CHECK(talk.source.rewinds == 0);
}

TEST_CASE("undo and retry take back what they say, and read no more than they must") {
    Talk talk;
    talk.say("y");
    talk.say("z");
    CHECK(talk.conversation.undo() == "z");
    ChatReply reply = talk.say("x");
    CHECK(talk.held() == "UyAab.UxAab");
    CHECK(reply.read == 2);  // x A
    reply = talk.conversation.retry(talk.options, talk.emit);
    CHECK(reply.read == 0);  // the logits after the prompt are still there
    CHECK(talk.held() == "UyAab.UxAab");
    CHECK(talk.conversation.undo() == "x");
    CHECK(talk.conversation.undo() == "y");
    CHECK(!talk.conversation.undo());
    CHECK_THROWS_AS(talk.conversation.retry(talk.options, talk.emit), Error);
    talk.say("y");
    CHECK(talk.held() == "UyAab");
    talk.conversation.reset();
    CHECK(talk.conversation.messages().empty());
}

TEST_CASE("a changed system text is read, and all that follows it") {
    Talk talk;
    talk.conversation.set_system("x");
    talk.say("y");
    talk.conversation.set_system("z");
    CHECK(talk.say("y").read == 10);
    CHECK(talk.held() == "SzUyAab.UyAab");
}

TEST_CASE(
    "a full context forgets the oldest turns before an answer, never the system text, and counts them") {
    Talk talk(20);
    talk.conversation.set_system("x");
    talk.say("y");  // SxUyAab
    talk.say("y");  // SxUyAab.UyAab: 13
    ChatReply reply = talk.say("yyyyyz");
    CHECK(reply.forgotten == 2);
    CHECK(talk.said == "ab");
    CHECK(talk.held() == "SxUyyyyyzAab");
    CHECK(talk.conversation.forgotten() == 2);
    CHECK(talk.conversation.messages().size() == 7);
    CHECK(talk.say("z").forgotten == 0);
    CHECK(talk.held() == "SxUyyyyyzAab.UzAab");
    // What is left was forgotten once; it has room now.
    talk.conversation.undo();
    talk.conversation.undo();
    talk.say("z");
    CHECK(talk.held() == "SxUyAab.UyAab.UzAab");
}

TEST_CASE("a full context forgets the oldest turns within an answer, too, and the answer goes on") {
    Talk talk(20, "abababababab<");
    talk.say("x");
    ChatReply reply = talk.say("y");  // UxA(12).UyA is 19 tokens
    CHECK(reply.end == GenerateEnd::end_token);
    CHECK(reply.forgotten == 1);
    CHECK(talk.said == "abababababab");
    CHECK(talk.held() == "UyAabababababab");
}

TEST_CASE("an answer that alone fills the context ends with it, and is kept") {
    Talk talk(10, "abc");
    ChatReply reply = talk.say("x");
    CHECK(reply.end == GenerateEnd::context);
    CHECK(talk.said == "abcabcab");
    CHECK(talk.conversation.messages().back().content == "abcabcab");
}

TEST_CASE("a message that does not fit the context is refused, and nothing has changed") {
    Talk talk(12);
    talk.say("y");
    const std::string held = talk.held();
    CHECK_THROWS_WITH_AS(
        talk.say("xxxxxxxxxxxxxxx"),
        doctest::Contains("message: expected with the system text fewer tokens than the context's 12"),
        Error);
    CHECK(talk.conversation.messages().size() == 2);
    CHECK(talk.conversation.forgotten() == 0);
    CHECK(talk.say("z").read == 4);
    CHECK(talk.held() == held + ".UzAab");
}

TEST_CASE("an answer that failed leaves nothing behind for the next one") {
    Talk talk;
    talk.say("x");
    const Emit fails = [](std::optional<TokenId>, std::string_view) { throw std::runtime_error("full"); };
    CHECK_THROWS_AS(talk.conversation.say("y", talk.options, fails), std::runtime_error);
    const ChatReply reply = talk.say("z");
    CHECK(talk.said == "ab");
    CHECK(reply.end == GenerateEnd::end_token);
    Talk other;
    other.say("x"), other.say("z");
    CHECK(talk.held() == other.held());
}

TEST_CASE("a template's end ends an answer, and is not said; what was written before it stays") {
    Talk talk(100, "abcdef<", R"("cd")");
    ChatReply reply = talk.say("x");
    CHECK(reply.end == GenerateEnd::stop);
    CHECK(talk.said == "ab");
    talk.say("y");
    CHECK(talk.held() == "UxAab.UyAabc");
}

TEST_CASE("a conversation out of a file goes on, and its open message can be answered") {
    Talk talk;
    talk.conversation.set_system("x");
    talk.conversation.set_messages({{"user", "y"}, {"assistant", "c"}, {"user", "z"}});
    talk.conversation.retry(talk.options, talk.emit);
    CHECK(talk.held() == "SxUyAc.UzAab");
    talk.conversation.set_messages({{"system", "z"}, {"user", "y"}});
    talk.say("x");
    CHECK(talk.held() == "SzUyA.UxAab");
    Talk small(12);
    small.conversation.set_messages({{"user", "y"}});
    CHECK_THROWS_AS(small.say("xxxxxxxxxxxxxxx"), Error);
    CHECK(small.conversation.messages().size() == 1);  // and not an empty answer behind it
}
