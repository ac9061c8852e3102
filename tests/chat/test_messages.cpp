// Conversations in files.
#include <doctest/doctest.h>

#include "base/error.h"
#include "chat/messages.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

TEST_CASE("a conversation comes back from its file as it was") {
    Scratch scratch;
    const std::vector<ChatMessage> said = {
        {"system", "Be \"brief\"."}, {"user", "a\nb\t\x01 ü"}, {"assistant", ""}, {"user", "<|im_end|>"}};
    save_messages(scratch / "c.json", said, Existing::keep);
    CHECK(load_messages(scratch / "c.json") == said);
    CHECK_THROWS_AS(save_messages(scratch / "c.json", said, Existing::keep), Error);
    save_messages(scratch / "c.json", {}, Existing::replace);
    CHECK(load_messages(scratch / "c.json").empty());
    save_messages(scratch / "bytes.json", {{"user", "\xFF"}}, Existing::keep);
    CHECK(load_messages(scratch / "bytes.json")[0].content == "\xEF\xBF\xBD");
}

TEST_CASE("a request with a list of messages is a conversation, too, whatever else it has") {
    const auto said = parse_messages(
        R"({"model": "x", "messages": [{"role": "user", "content": "hi", "name": "me"}]})", "r.json");
    CHECK(said == std::vector<ChatMessage>{{"user", "hi"}});
}

TEST_CASE("a conversation's file that is none is refused, with the place") {
    struct Fault {
        std::string json, says;
    };
    std::string deep = "x";
    for (int i = 0; i < 200; i++) deep = "[" + deep + "]";
    const std::vector<Fault> faults = {
        {"", "c.json: line 1, column 1: expected JSON, got the end of the file"},
        {"3", "c.json: expected a list of messages, got number"},
        {R"({"role": "user"})", "c.json: expected a list of messages, got object"},
        {R"([1])", "c.json: [0]: expected an object with role and content, got number"},
        {R"([{"role": "user"}])", "c.json: [0].content: expected a string, got nothing"},
        {R"([{"role": "user", "content": [{"type": "text"}]}])",
         "c.json: [0].content: expected a string, got array"},
        {R"([{"role": 1, "content": "x"}])", "c.json: [0].role: expected a string, got number"},
        {R"([{"role": "tool", "content": "x"}])", "c.json: [0].role: expected system or user, got 'tool'"},
        {R"([{"role": "assistant", "content": "x"}])",
         "c.json: [0].role: expected system or user, got 'assistant'"},
        {R"([{"role": "user", "content": "x"}, {"role": "user", "content": "y"}])",
         "c.json: [1].role: expected assistant, got 'user'"},
        {R"([{"role": "system", "content": "x"}, {"role": "system", "content": "y"}])",
         "c.json: [1].role: expected user, got 'system'"},
        {R"({"messages": [{"role": "tool", "content": "x"}]})",
         "c.json: messages[0].role: expected system or user, got 'tool'"},
        {R"({"messages": 3})", "c.json: messages: expected a list of messages, got number"},
        {"[{\"role\": \"user\", \"content\": \"\xFF\"}]", "c.json: line 1"},
        {deep, "c.json"},
    };
    for (const Fault& fault : faults) {
        CAPTURE(fault.json);
        const std::string line = test::refusal([&] { parse_messages(fault.json, "c.json"); });
        CHECK_MESSAGE(line.starts_with(fault.says), line);
    }
}
