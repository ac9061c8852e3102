// Chat templates: what every family's conversation looks like, and what a person's words cannot do in it.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "formats/gguf.h"
#include "support.h"
#include "text/chat/template.h"
#include "text/encode/vocabulary.h"

using namespace linnet;
using namespace linnet::test;

namespace {

const std::string system_text = "You are a helpful assistant";

std::vector<ChatTurn> turns() {
    return {{"Hello", ChatTurn::Answer{"Hi there", {}}},
            {"Who are you", ChatTurn::Answer{"   I am an assistant   ", {}}},
            {"Another question", std::nullopt}};
}

/// That conversation as the families' published templates print it, but for a begin token at its very
/// beginning. llama.cpp's tests/test-chat-template.cpp has most of these texts, too.
const std::map<std::string, std::string> printed = {
    {"chatml",
     "<|im_start|>system\nYou are a helpful assistant<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
     "<|im_start|>assistant\nHi there<|im_end|>\n<|im_start|>user\nWho are "
     "you<|im_end|>\n<|im_start|>assistant\n"
     "   I am an assistant   <|im_end|>\n<|im_start|>user\nAnother "
     "question<|im_end|>\n<|im_start|>assistant\n"},
    {"phi4",
     "<|im_start|>system<|im_sep|>You are a helpful "
     "assistant<|im_end|><|im_start|>user<|im_sep|>Hello<|im_end|>"
     "<|im_start|>assistant<|im_sep|>Hi there<|im_end|><|im_start|>user<|im_sep|>Who are you<|im_end|>"
     "<|im_start|>assistant<|im_sep|>   I am an assistant   <|im_end|><|im_start|>user<|im_sep|>Another "
     "question"
     "<|im_end|><|im_start|>assistant<|im_sep|>"},
    {"llama2",
     "[INST] <<SYS>>\nYou are a helpful assistant\n<</SYS>>\n\nHello [/INST] Hi there </s><s>[INST] Who are "
     "you "
     "[/INST] I am an assistant </s><s>[INST] Another question [/INST]"},
    {"llama3",
     "<|start_header_id|>system<|end_header_id|>\n\nYou are a helpful "
     "assistant<|eot_id|><|start_header_id|>user"
     "<|end_header_id|>\n\nHello<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nHi there<|eot_id|>"
     "<|start_header_id|>user<|end_header_id|>\n\nWho are you<|eot_id|><|start_header_id|>assistant"
     "<|end_header_id|>\n\nI am an assistant<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnother "
     "question"
     "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
    {"gemma",
     "<start_of_turn>user\nYou are a helpful assistant\n\nHello<end_of_turn>\n<start_of_turn>model\nHi there"
     "<end_of_turn>\n<start_of_turn>user\nWho are you<end_of_turn>\n<start_of_turn>model\nI am an assistant"
     "<end_of_turn>\n<start_of_turn>user\nAnother question<end_of_turn>\n<start_of_turn>model\n"},
    {"phi3",
     "<|system|>\nYou are a helpful assistant<|end|>\n<|user|>\nHello<|end|>\n<|assistant|>\nHi "
     "there<|end|>\n"
     "<|user|>\nWho are you<|end|>\n<|assistant|>\n   I am an assistant   <|end|>\n<|user|>\nAnother question"
     "<|end|>\n<|assistant|>\n"},
    {"phi4-mini",
     "<|system|>You are a helpful assistant<|end|><|user|>Hello<|end|><|assistant|>Hi there<|end|><|user|>"
     "Who are you<|end|><|assistant|>   I am an assistant   <|end|><|user|>Another "
     "question<|end|><|assistant|>"},
    {"mistral",
     "[INST] You are a helpful assistant\n\nHello [/INST]Hi there</s>[INST] Who are you [/INST]   I am an "
     "assistant   </s>[INST] Another question [/INST]"},
    {"mistral-v1",
     " [INST] You are a helpful assistant\n\nHello [/INST] Hi there</s> [INST] Who are you [/INST]    I am "
     "an "
     "assistant   </s> [INST] Another question [/INST]"},
    {"mistral-v3",
     "[INST] You are a helpful assistant\n\nHello[/INST] Hi there</s>[INST] Who are you[/INST]    I am an "
     "assistant   </s>[INST] Another question[/INST]"},
    {"mistral-v3-tekken",
     "[INST]You are a helpful assistant\n\nHello[/INST]Hi there</s>[INST]Who are you[/INST]   I am an "
     "assistant"
     "   </s>[INST]Another question[/INST]"},
    {"mistral-v7",
     "[SYSTEM_PROMPT] You are a helpful assistant[/SYSTEM_PROMPT][INST] Hello[/INST] Hi there</s>[INST] Who "
     "are "
     "you[/INST]    I am an assistant   </s>[INST] Another question[/INST]"},
    {"mistral-v7-tekken",
     "[SYSTEM_PROMPT]You are a helpful assistant[/SYSTEM_PROMPT][INST]Hello[/INST]Hi there</s>[INST]Who are "
     "you"
     "[/INST]   I am an assistant   </s>[INST]Another question[/INST]"},
    {"zephyr",
     "<|system|>\nYou are a helpful assistant</s>\n<|user|>\nHello</s>\n<|assistant|>\nHi "
     "there</s>\n<|user|>\n"
     "Who are you</s>\n<|assistant|>\n   I am an assistant   </s>\n<|user|>\nAnother "
     "question</s>\n<|assistant|>\n"},
    {"tulu",
     "<|system|>\nYou are a helpful assistant\n<|user|>\nHello\n<|assistant|>\nHi there</s>\n<|user|>\nWho "
     "are you\n"
     "<|assistant|>\n   I am an assistant   </s>\n<|user|>\nAnother question\n<|assistant|>\n"},
    {"deepseek",
     "You are a helpful assistant### Instruction:\nHello\n### Response:\nHi there\n<|EOT|>\n### "
     "Instruction:\n"
     "Who are you\n### Response:\n   I am an assistant   \n<|EOT|>\n### Instruction:\nAnother question\n"
     "### Response:\n"},
    {"deepseek2",
     "You are a helpful assistant\n\nUser: Hello\n\nAssistant: Hi there</s>User: Who are you\n\nAssistant:   "
     " I am "
     "an assistant   </s>User: Another question\n\nAssistant:"},
    {"deepseek3",
     "You are a helpful assistant<｜User｜>Hello<｜Assistant｜>Hi there<｜end▁of▁sentence｜><｜User｜>Who "
     "are you"
     "<｜Assistant｜>   I am an assistant   <｜end▁of▁sentence｜><｜User｜>Another question<｜Assistant｜>"},
    {"granite",
     "<|start_of_role|>system<|end_of_role|>You are a helpful assistant<|end_of_text|>\n<|start_of_role|>user"
     "<|end_of_role|>Hello<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>Hi there<|end_of_text|>\n"
     "<|start_of_role|>user<|end_of_role|>Who are "
     "you<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>"
     "   I am an assistant   <|end_of_text|>\n<|start_of_role|>user<|end_of_role|>Another "
     "question<|end_of_text|>\n"
     "<|start_of_role|>assistant<|end_of_role|>"},
    {"command-r",
     "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>You are a helpful assistant<|END_OF_TURN_TOKEN|>"
     "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>Hello<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"
     "Hi there<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>Who are you<|END_OF_TURN_TOKEN|>"
     "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>I am an assistant<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|>"
     "<|USER_TOKEN|>Another question<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"},
    {"minicpm",
     "You are a helpful assistant<用户>Hello<AI>Hi there<用户>Who are you<AI>I am an assistant<用户>Another "
     "question<AI>"},
    {"plain",
     "You are a helpful assistant\nHelloHi there\nWho are you   I am an assistant   \nAnother question"},
};

/// Stretches of the programs that model files carry, as published, and what they mean.
const std::vector<std::pair<std::string, std::string>> carried = {
    {"chatml",
     "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + "
     "'<|im_end|>' + '\\n'}}{% endfor %}"},
    {"phi4", "{{'<|im_start|>system<|im_sep|>' + message['content'] + '<|im_end|>'}}"},
    {"llama2",
     "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"
     "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"},
    {"llama3",
     "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ "
     "message['content'] | trim + '<|eot_id|>' %}"},
    {"gemma", "{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}"},
    {"phi3", "{{'<|user|>' + '\\n' + message['content'] + '<|end|>' + '\\n' + '<|assistant|>' + '\\n'}}"},
    {"phi3",
     "{{'<|' + message['role'] + '|>' + '\\n' + message['content'] + '<|end|>\\n' }}{{ '<|assistant|>\\n' "
     "}}"},
    {"phi4-mini",
     "{{ '<|' + message['role'] + '|>' + message['content'] + '<|tool|>' + message['tools'] + "
     "'<|/tool|>' + '<|end|>' }}{{ '<|assistant|>' }}"},
    {"mistral",
     "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
     "{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}"},
    {"mistral-v1", "{{- ' [INST] ' + system_message + '\\n\\n' + message['content'] + ' [/INST]' }}"},
    {"mistral-v3", "{{- \"[AVAILABLE_TOOLS] [\" }}{{- \"[INST] \" + message[\"content\"] + \"[/INST]\" }}"},
    {"mistral-v3-tekken",
     "{{- \"[AVAILABLE_TOOLS][\" }}{{- \"[INST]\" + message[\"content\"] + \"[/INST]\" }}"},
    {"mistral-v7",
     "{{ '[INST] ' + message['content'] + '[/INST]' }}{{ '[SYSTEM_PROMPT] ' + message['content'] + "
     "'[/SYSTEM_PROMPT]' }}"},
    {"mistral-v7-tekken",
     "{{- '[SYSTEM_PROMPT]' + system_message + '[/SYSTEM_PROMPT]' }}"
     "{{- '[INST]' + message['content'] + '[/INST]' }}"},
    {"zephyr",
     "{{ '<|user|>\\n' + message['content'] + eos_token }}{{ '<|system|>\\n' + message['content'] + "
     "eos_token }}{{ '<|assistant|>\\n'  + message['content'] + eos_token }}"},
    {"tulu",
     "{{ '<|user|>\\n' + message['content'] + '\\n' }}{{ '<|assistant|>\\n'  + message['content'] + "
     "eos_token + '\\n' }}"},
    {"deepseek",
     "{{'### Instruction:\\n' + message['content'] + '\\n'}}{{'### Response:\\n' + message['content'] + "
     "'\\n<|EOT|>\\n'}}"},
    {"deepseek2",
     "{{ 'User: ' + message['content'] + '\\n\\n' }}{{ 'Assistant: ' + message['content'] + eos_token }}"},
    {"deepseek3",
     "{{'<｜User｜>' + message['content']}}{{'<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>'}}"},
    {"granite", "{{- '<|start_of_role|>user<|end_of_role|>' + message['content'] + '<|end_of_text|>\\n' }}"},
    {"command-r",
     "{{ '<|START_OF_TURN_TOKEN|><|USER_TOKEN|>' + content.strip() + '<|END_OF_TURN_TOKEN|>' }}"},
    {"minicpm", "{{'<用户>' + message['content'].strip() + '<AI>'}}"},
};

std::string joined(std::span<const ChatPart> parts, const std::string& bos = "<s>",
                   const std::string& eos = "</s>") {
    std::string text;
    for (const ChatPart& part : parts) text += part.text;
    for (auto [from, to] : {std::pair{"{bos}", bos}, {"{eos}", eos}})
        for (std::size_t at; (at = text.find(from)) != std::string::npos;) text.replace(at, 5, to);
    return text;
}

/// Everything in any template that looks like a token of its own.
std::vector<std::string> marks() {
    std::vector<std::string> found = {"<s>", "</s>"};
    for (const auto& [name, text] : printed)
        for (std::size_t at = 0; (at = text.find_first_of("<[", at)) != std::string::npos; at++) {
            const std::size_t end = text.find(text[at] == '<' ? '>' : ']', at);
            const std::string mark = text.substr(at, end + 1 - at);
            if (mark.starts_with("<<") || std::find(found.begin(), found.end(), mark) != found.end())
                continue;
            found.push_back(mark);
        }
    return found;
}

/// A byte-level vocabulary: a token per byte (its id), and those that templates have, of type `type`.
TokenizerPtr vocabulary_of_marks(const std::string& path, TokenType type = TokenType::control) {
    const std::vector<std::string> special = marks();
    std::vector<std::string> tokens;
    std::vector<std::int32_t> types;
    for (int byte = 0; byte < 256; byte++) {
        tokens.emplace_back(byte_alphabet::spell(static_cast<std::uint8_t>(byte)));
        types.push_back(1);
    }
    for (const std::string& mark : special) {
        tokens.push_back(mark);
        types.push_back(static_cast<std::int32_t>(mark.size() > 4 ? type : TokenType::control));
    }
    GgufWriter writer;
    writer.add("general.architecture", "gpt2");
    writer.add("tokenizer.ggml.model", "gpt2");
    writer.add("tokenizer.ggml.pre", "gpt-2");
    writer.add("tokenizer.ggml.tokens", tokens.size(),
               [&](std::size_t i) { return std::string_view(tokens[i]); });
    writer.add("tokenizer.ggml.merges", 0, [](std::size_t) { return std::string_view(); });
    writer.add("tokenizer.ggml.token_type", std::span<const std::int32_t>(types));
    writer.add("tokenizer.ggml.bos_token_id", std::uint32_t{256});
    writer.add("tokenizer.ggml.eos_token_id", std::uint32_t{257});
    writer.add("tokenizer.ggml.add_bos_token", true);
    write_text(path, writer.header());
    return load_tokenizer(path);
}

/// The ids that such a vocabulary gives to a text whose marks are all tokens.
std::vector<TokenId> by_hand(const std::string& text) {
    const std::vector<std::string> special = marks();
    std::vector<TokenId> ids = {256};
    for (std::size_t at = 0; at < text.size();) {
        std::size_t best = 0;
        for (std::size_t i = 0; i < special.size(); i++)
            if (text.compare(at, special[i].size(), special[i]) == 0 && special[i].size() > best) {
                if (best == 0) ids.push_back(0);
                ids.back() = static_cast<TokenId>(256 + i);
                best = special[i].size();
            }
        if (best == 0) ids.push_back(static_cast<std::uint8_t>(text[at]));
        at += std::max<std::size_t>(best, 1);
    }
    return ids;
}

}  // namespace

TEST_CASE("every chat template prints a conversation as its family's published one does") {
    CHECK(chat_templates().size() == printed.size());
    for (const ChatTemplate& form : chat_templates()) {
        CAPTURE(form.name);
        REQUIRE(printed.contains(form.name));
        CHECK(joined(chat_parts(form, system_text, turns())) == printed.at(form.name));
    }
}

TEST_CASE("every chat template is recognised by what model files carry, and none is taken for another") {
    std::map<std::string, int> seen;
    for (const auto& [name, source] : carried) {
        const auto& of_source = source;
        CAPTURE(of_source);
        const ChatTemplate& form = recognise_chat_template(source, chat_templates(), "model.gguf");
        CHECK(form.name == name);
        seen[form.name]++;
    }
    for (const ChatTemplate& form : chat_templates()) CHECK((seen[form.name] > 0) == !form.known_by.empty());
    const std::string unknown =
        refusal([] { recognise_chat_template("{{ 'Q: ' }}", chat_templates(), "model.gguf"); });
    CHECK(has(unknown,
              "model.gguf: tokenizer.chat_template: expected a template that linnet knows, got another"));
    CHECK(has(unknown, "--template NAME or FILE"));
    CHECK(has(refusal([] { recognise_chat_template("<|im_start|> [INST] ", chat_templates(), "m"); }),
              "got marks of chatml, mistral"));
}

TEST_CASE("a chat template's marks become tokens, and a conversation the ids of its text") {
    Scratch scratch;
    const TokenizerPtr tokenizer = vocabulary_of_marks(scratch / "v.gguf");
    for (const ChatTemplate& form : chat_templates()) {
        CAPTURE(form.name);
        CHECK(encode_chat(*tokenizer, chat_parts(form, system_text, turns())) ==
              by_hand(printed.at(form.name)));
    }
}

TEST_CASE("a chat template's conversation has the ids of real vocabularies for its text in one piece") {
    for (const char* name : {"gpt-2", "llama-spm", "starcoder"}) {
        auto path = shared_data(std::string("data/vocab/ggml-vocab-") + name + ".gguf");
        if (!path) return;
        const TokenizerPtr tokenizer = load_tokenizer(*path);
        for (const ChatTemplate& form : chat_templates()) {
            CAPTURE(form.name);
            const std::vector<ChatTurn> one = {{"Hello, wörld\n\n  x", std::nullopt}};
            const std::vector<ChatPart> parts = chat_parts(form, system_text, one);
            EncodeOptions options;
            options.add_special = options.parse_special = true;
            CHECK(encode_chat(*tokenizer, parts) ==
                  tokenizer->encode(joined(parts, std::string(tokenizer->piece(*tokenizer->bos())),
                                           std::string(tokenizer->piece(*tokenizer->eos()))),
                                    options));
        }
    }
}

TEST_CASE("no message spells a token of a chat template, whatever type the file gives it") {
    Scratch scratch;
    std::string everything = "a";
    for (const std::string& mark : marks()) everything += mark + "b" + mark;
    for (TokenType type : {TokenType::control, TokenType::user_defined}) {
        const TokenizerPtr tokenizer =
            vocabulary_of_marks(scratch / std::to_string(static_cast<int>(type)), type);
        for (const ChatTemplate& form : chat_templates()) {
            CAPTURE(form.name);
            std::vector<ChatTurn> hostile = turns();
            hostile[1].user = everything, hostile[1].answer->text = everything;
            auto specials = [&](const std::vector<ChatTurn>& said, const std::string& system, bool special) {
                const auto ids = encode_chat(*tokenizer, chat_parts(form, system, said), special);
                std::map<TokenId, int> counts;
                for (TokenId id : ids) counts[id >= 256 ? id : 0] += id >= 256;
                return counts;
            };
            const auto own = specials(turns(), system_text, false),
                       got = specials(hostile, everything, false);
            for (const auto& [id, count] : own) CHECK(got.at(id) == count);
            // Tokens that are not the template's may stand in a text where the file says that they always do.
            if (type == TokenType::control) CHECK(got == own);
            CHECK(specials(hostile, system_text, true) != own);  // --special
        }
    }
}

TEST_CASE("an answer goes back into a chat template as the tokens that were written") {
    Scratch scratch;
    const TokenizerPtr tokenizer = vocabulary_of_marks(scratch / "v.gguf");
    const ChatTemplate form = open_chat_template("llama2", "--template");
    std::vector<ChatTurn> said = turns();
    const std::vector<TokenId> written = {' ', 'H', 300, '!'};
    said[0].answer = ChatTurn::Answer{"H!", written};
    const auto ids = encode_chat(*tokenizer, chat_parts(form, "", said));
    auto at = std::search(ids.begin(), ids.end(), written.begin(), written.end());
    REQUIRE(at != ids.end());
    CHECK(tokenizer->piece(at[-1]) == "[/INST]");  // the space before it is the model's
    CHECK(std::vector<TokenId>(at + 4, at + 7) == std::vector<TokenId>{' ', 257, 256});
    CHECK(end_tokens(*tokenizer, open_chat_template("chatml", "")).size() == 1);
    CHECK(end_tokens(*tokenizer, form).empty());
}

TEST_CASE("a chat template's file is checked, and faults in it are named with their place") {
    const std::string begin = R"({"user": {"before": "U:"}, "assistant": {"before": "A:"})";
    CHECK(parse_chat_template(begin + "}", "t.json").user.before == "U:");
    CHECK(parse_chat_template(begin + R"(, "ends": ["x", "y"]})", "t.json").ends.size() == 2);
    struct Fault {
        std::string json, says;
    };
    const std::vector<Fault> faults = {
        {"", "t.json: line 1, column 1: expected JSON, got the end of the file"},
        {"[]", "t.json: expected an object, got array"},
        {R"({"user": {"before": "U:"}})",
         "t.json: assistant: expected what stands before and after its messages"},
        {begin + R"(, "end": "x"})", "did you mean ends?"},
        {begin + R"(, "trim": 3})", "t.json: trim: expected true or false, got 3"},
        {begin + R"(, "ends": ["x", ""]})", "t.json: ends: expected strings that are not empty"},
        {R"({"user": {"befor": "U:"}, "assistant": {}})", "did you mean user.before?"},
        {R"({"user": {}, "assistant": {}})", "t.json: user: expected text that tells roles apart"},
        {"{\"user\": \"\x01\"}", "t.json: line 1"},
    };
    for (const Fault& fault : faults) {
        CAPTURE(fault.json);
        const std::string line = refusal([&] { parse_chat_template(fault.json, "t.json"); });
        CHECK_MESSAGE(has(line, fault.says), line);
    }
    const std::string outside = refusal([] { open_chat_template("chatlm", "--template"); });
    CHECK(outside.starts_with("--template: expected the name of a file, or one of chatml, command-r, "));
    CHECK(has(outside, "got 'chatlm' (did you mean chatml?)"));
}

TEST_CASE(
    "what a vocabulary has no token for is left out of a chat, and text in braces that names none is text") {
    Scratch scratch;
    const TokenizerPtr letters = train_tokenizer("char", "ab{}", 0, 1);  // neither begins a text nor ends it
    const auto spelled = [&](const char* text) { return letters->encode(text); };
    const std::string json =
        R"({"name": "t", "user": {"before": "{bos}{a}"}, "assistant": {"before": "b{eos}"},
                                 "trim": true, "ends": ["zzz", "ab", "a"]})";
    write_text(scratch / "t.json", json);
    const ChatTemplate form = open_chat_template(scratch / "t.json", "--template");
    const std::vector<ChatTurn> said = {{" \t ", std::nullopt}};  // nothing is left of it
    for (bool special : {false, true})
        CHECK(encode_chat(*letters, chat_parts(form, "", said), special) == spelled("{a}b"));
    CHECK(end_tokens(*letters, form).empty());
    std::vector<std::size_t> places;
    const std::vector<ChatPart> parts = {{ChatPart::Kind::written, "", {}},
                                         {ChatPart::Kind::markup, "{a}", {}},
                                         {ChatPart::Kind::written, "b", {1}},
                                         {ChatPart::Kind::plain, "a", {}}};
    CHECK(encode_chat(*letters, parts, false, &places).size() == 5);
    CHECK(places == std::vector<std::size_t>{0, 3});
    for (const char* told_apart :
         {R"({"user": {"after": "U"}, "assistant": {}})", R"({"user": {}, "assistant": {"before": "A"}})"})
        CHECK(!parse_chat_template(told_apart, "t.json").continues);
    CHECK(parse_chat_template(R"({"continues": true, "user": {}, "assistant": {}})", "t.json").continues);
}

TEST_CASE("a template's Jinja program begins with the template as data, which is read back whole") {
    for (const ChatTemplate& form : chat_templates()) {
        CAPTURE(form.name);
        const std::string source = jinja_of(form, true);
        const ChatTemplate back = recognise_chat_template(source, chat_templates(), "model.gguf");
        CHECK(back.name == form.name);
        CHECK(back.continues == form.continues);
        CHECK(back.ends == form.ends);
        CHECK(joined(chat_parts(back, system_text, turns())) == printed.at(form.name));
        CHECK(jinja_of(back, true) == source);
        CHECK(source.find('\n') == std::string::npos);  // of which runtimes drop some
    }
    // One of one's own, with all that would end a comment, a text or a tag.
    const ChatTemplate own = parse_chat_template(
        R"({"name": "own", "user": {"before": "#} %} }} '\\ {x}\t", "after": "{eos}\r\n"}, "assistant": {"before": "é: "},
            "ends": ["#}", "\n"]})",
        "own.json");
    const std::string source = jinja_of(own, false);
    CHECK(has(source, R"({{ '#} %} }} \'\\ {x}\t' }}{{ message['content'] }}{{ eos_token }}{{ '\r\n' }})"));
    CHECK(has(source, "{% if add_generation_prompt %}{{ 'é:' }}{% endif %}"));
    CHECK_FALSE(has(source, "bos_token"));
    const ChatTemplate back = recognise_chat_template(source, chat_templates(), "model.gguf");
    CHECK(back.name == "own");
    CHECK(back.ends == own.ends);
    CHECK(joined(chat_parts(back, "", turns())) == joined(chat_parts(own, "", turns())));
}

TEST_CASE("a template's Jinja program prints what the template does, role by role") {
    const std::string begin =
        "{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] %}"
        "{% set turns = messages[1:] %}{% else %}{% set system = '' %}{% set turns = messages %}{% endif %}";
    CHECK(
        jinja_of(open_chat_template("chatml", ""), false)
            .ends_with(
                begin +
                R"({% if system %}{{ '<|im_start|>system\n' }}{{ system }}{{ '<|im_end|>\n' }}{% endif %})"
                R"({% for message in turns %}{% if message['role'] == 'user' %}{{ '<|im_start|>user\n' }})"
                R"({{ message['content'] }}{{ '<|im_end|>\n' }}{% elif message['role'] == 'assistant' %}{{ '<|im_start|>assistant\n' }})"
                R"({{ message['content'] }}{{ '<|im_end|>\n' }}{% endif %}{% endfor %})"
                R"({% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})"));
    CHECK(
        jinja_of(open_chat_template("llama2", ""), true)
            .ends_with(
                begin +
                R"({{ bos_token }}{% for message in turns %}{% if message['role'] == 'user' %}{{ '[INST] ' }})"
                R"({% if loop.first and system %}{{ '<<SYS>>\n' }}{{ system | trim }}{{ '\n<</SYS>>\n\n' }}{% endif %})"
                R"({{ message['content'] | trim }}{{ ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' ' }}{{ message['content'] | trim }})"
                R"({{ ' ' }}{{ eos_token }}{{ bos_token }}{% endif %}{% endfor %})"));
}

TEST_CASE("a model file whose comment is no template is refused by its place in that") {
    const auto refused = [](const std::string& source) {
        return refusal([&] { recognise_chat_template(source, chat_templates(), "model.gguf"); });
    };
    CHECK(
        has(refused("{# linnet: {} #}"), "model.gguf: tokenizer.chat_template: user: expected what stands"));
    CHECK(has(refused("{# linnet: [ #}"), "model.gguf: tokenizer.chat_template: line 1"));
    const auto in_file = [&](const std::string& source) {
        return refusal([&] { recognise_chat_template(source, chat_templates(), "a.jinja", ""); });
    };
    CHECK(has(in_file("{# linnet: [ #}"), "a.jinja: line 1"));
    CHECK(has(in_file("{{ 'Q: ' }}"), "a.jinja: expected a template that linnet knows"));
    CHECK(has(refused("{# linnet: "), "expected a template that linnet knows, got another"));
    // Another's comment says nothing.
    CHECK(recognise_chat_template("{# chatlm #}<|im_start|>", chat_templates(), "m").name == "chatml");
    Scratch scratch;
    write_text(scratch / "mine.json", R"({"user": {"before": "U"}, "assistant": {}})");
    CHECK(open_chat_template(scratch / "mine.json", "--template").name == "mine");
}
