#include <doctest/doctest.h>

#include "base/error.h"
#include "generate/fakes.h"
#include "generate/grammar/constraint.h"
#include "generate/grammar/gbnf.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

struct Told {
    std::string text;
    std::vector<std::string> pieces;
    std::vector<TokenId> ids;
    Generated result;
};

Told tell(LogitSource& source, const Tokenizer& tokenizer, std::vector<TokenId> prompt,
          GenerateOptions options) {
    Told told;
    options.sampler.temperature = 0;
    told.result =
        generate(source, tokenizer, prompt, options, [&](std::optional<TokenId> id, std::string_view text) {
            if (id) told.ids.push_back(*id);
            told.pieces.emplace_back(text);
            told.text += text;
        });
    return told;
}

GenerateOptions up_to(std::int64_t tokens) {
    GenerateOptions options;
    options.tokens = tokens;
    return options;
}

const std::vector<std::string> letters{"a", "b", "c", "ab", ""};

}  // namespace

TEST_CASE("generate writes as many tokens as asked, each given all before it") {
    FakeTokenizer tokenizer(letters);
    FakeSource source(100, 5, recite({0, 1, 2}));
    Told told = tell(source, tokenizer, {2, 2}, up_to(5));
    CHECK(told.text == "abcab");
    CHECK(told.ids == std::vector<TokenId>{0, 1, 2, 0, 1});
    CHECK(told.result.ids == told.ids);
    CHECK(told.result.end == GenerateEnd::length);
    CHECK(source.held == std::vector<TokenId>{2, 2, 0, 1, 2, 0});  // the last token needs no logits after it
}

TEST_CASE("generate of no tokens reads the prompt and writes nothing") {
    FakeTokenizer tokenizer(letters);
    FakeSource source(100, 5, recite({0}));
    Told told = tell(source, tokenizer, {2}, up_to(0));
    CHECK(told.text.empty());
    CHECK(told.result.end == GenerateEnd::length);
    CHECK(source.held.size() == 1);
}

TEST_CASE("generate ends at an end token, which adds no text, unless told to go on") {
    FakeTokenizer tokenizer(letters);
    tokenizer.end = 4;
    FakeSource source(100, 5, recite({0, 4, 1}));
    Told told = tell(source, tokenizer, {2}, up_to(10));
    CHECK(told.text == "a");
    CHECK(told.result.ids == std::vector<TokenId>{0, 4});
    CHECK(told.result.end == GenerateEnd::end_token);
    GenerateOptions options = up_to(3);
    options.ignore_end = true;
    FakeSource again(100, 5, recite({0, 4, 1}));
    CHECK(tell(again, tokenizer, {2}, options).text == "ab");
}

TEST_CASE("generate ends before a stop string that three tokens spell together") {
    FakeTokenizer tokenizer(letters);
    FakeSource source(100, 5, recite({0, 2, 1, 2, 0, 0}));
    GenerateOptions options = up_to(20);
    options.stops = {"bca", "zzz"};
    Told told = tell(source, tokenizer, {2}, options);
    CHECK(told.text == "ac");
    CHECK(told.result.end == GenerateEnd::stop);
    CHECK(told.result.ids.size() == 5);
}

TEST_CASE("generate lets held-back text go when it turns out to be no stop string, or at the end") {
    FakeTokenizer tokenizer(letters);
    FakeSource source(100, 5, recite({1, 2, 2, 1, 2}));
    GenerateOptions options = up_to(5);
    options.stops = {"bca"};
    Told told = tell(source, tokenizer, {2}, options);
    CHECK(told.text == "bccbc");
    CHECK(told.pieces == std::vector<std::string>{"", "", "bcc", "", "", "bc"});
}

TEST_CASE("generate says that the context is full, after the last token that it has room for") {
    FakeTokenizer tokenizer(letters);
    FakeSource source(4, 5, recite({0, 1, 2}));
    Told told = tell(source, tokenizer, {2, 2}, up_to(100));
    CHECK(told.result.end == GenerateEnd::context);
    CHECK(told.text ==
          "abc");  // two tokens fit beside the prompt; the third is picked from the fourth's logits
    CHECK(source.held.size() == 4);
}

TEST_CASE("generate with a shift goes on past a full context, on the newer half and the begin token") {
    FakeTokenizer tokenizer({"a", "b", ""});
    tokenizer.begin = 2;
    FakeSource source(8, 3, recite({0, 1}));
    GenerateOptions options = up_to(30);
    options.shift = true;
    Told told = tell(source, tokenizer, {2, 0}, options);
    CHECK(told.result.ids.size() == 30);
    CHECK(told.text == std::string("abababababababababababababababab").substr(0, 30));
    CHECK(source.rewinds > 0);
    CHECK(source.held.front() == 2);
}

TEST_CASE("generate refuses a prompt longer than the context, and says both numbers") {
    FakeTokenizer tokenizer(letters);
    FakeSource source(4, 5, recite({0}));
    const std::string line = test::refusal([&] { tell(source, tokenizer, {0, 0, 0, 0, 0}, up_to(1)); });
    CHECK_MESSAGE(test::has(line, "expected at most 4 tokens, got 5"), line);
}

TEST_CASE("a character cut by token borders leaves whole") {
    FakeTokenizer tokenizer({"\xE4", "\xB8", "\xAD", "x"});
    FakeSource source(100, 4, recite({0, 1, 2, 3, 0}));
    Told told = tell(source, tokenizer, {3}, up_to(5));
    CHECK(told.pieces == std::vector<std::string>{"", "", "\xE4\xB8\xAD", "x", "", "\xEF\xBF\xBD"});
}

TEST_CASE("a prompt has the begin token that the vocabulary asks for, and is never empty") {
    FakeTokenizer tokenizer({"a", "\n", "", ""});
    CHECK(encode_prompt(tokenizer, "aa", false) == std::vector<TokenId>{0, 0});
    CHECK(encode_prompt(tokenizer, "", false) == std::vector<TokenId>{1});
    tokenizer.end = 3;
    CHECK(encode_prompt(tokenizer, "", false) == std::vector<TokenId>{3});
    tokenizer.begin = 2;
    CHECK(encode_prompt(tokenizer, "", false) == std::vector<TokenId>{2});
    tokenizer.adds_begin = true;
    CHECK(encode_prompt(tokenizer, "a", false) == std::vector<TokenId>{2, 0});
}

namespace {

/// What each of several requests came to; all run over one source.
std::vector<Generated> tell_all(LogitSource& source, const Tokenizer& tokenizer,
                                std::vector<Request> requests) {
    std::vector<Generated> results(requests.size());
    for (std::size_t i = 0; i < requests.size(); i++) {
        requests[i].options.sampler.temperature = 0;
        requests[i].emit = [](std::optional<TokenId>, std::string_view) {};
        requests[i].done = [&results, i](const Generated& result) { results[i] = result; };
    }
    Generator generator(source, tokenizer);
    generator.run(requests);
    return results;
}

/// The next token is a function of all tokens before it.
TokenId mixed(const std::vector<TokenId>& held) {
    std::uint64_t h = 7;
    for (TokenId id : held) h = (h ^ static_cast<std::uint64_t>(id + 1)) * 0x9E3779B97F4A7C15u;
    return static_cast<TokenId>((h >> 40) % 4);
}

std::vector<TokenId> some_tokens(int seed, int count) {
    std::vector<TokenId> tokens;
    for (int i = 0; i < count; i++) tokens.push_back((seed * 7 + i * i * 3 + i / 5) % 4);
    return tokens;
}

Request request_of(std::vector<TokenId> prompt, std::int64_t tokens) {
    Request request;
    request.prompt = std::move(prompt);
    request.options = up_to(tokens);
    return request;
}

}  // namespace

TEST_CASE("texts join and leave a bounded number of slots, and each is what it is alone") {
    FakeTokenizer tokenizer(letters);
    std::vector<Request> requests;
    for (int i = 0; i < 9; i++)
        requests.push_back(request_of(some_tokens(i, 3 + 5 * (i % 4)), 1 + (i * 5) % 17));
    std::vector<std::vector<TokenId>> alone;
    for (const Request& request : requests) {
        FakeSource source(64, 5, mixed);
        alone.push_back(tell_all(source, tokenizer, {request})[0].ids);
    }
    for (std::size_t slots : {1, 2, 4, 16}) {
        FakeSource source(64, 5, mixed, slots);
        std::vector<Generated> all = tell_all(source, tokenizer, requests);
        for (std::size_t i = 0; i < all.size(); i++) CHECK(all[i].ids == alone[i]);
    }
    FakeSource source(64, 5, mixed, 4);
    tell_all(source, tokenizer, requests);
    CHECK(source.runs < 45);  // together: alone they write 71 tokens
}

TEST_CASE("a prompt that several texts share is read once; so is a long beginning that prompts share") {
    FakeTokenizer tokenizer(letters);
    const std::vector<TokenId> prompt = some_tokens(3, 30);
    for (std::size_t slots : {1, 3, 8}) {
        FakeSource source(64, 5, mixed, slots);
        std::vector<Generated> all =
            tell_all(source, tokenizer, std::vector<Request>(6, request_of(prompt, 10)));
        CHECK(source.read == 30);
        CHECK(source.forks == (slots == 1 ? 0 : static_cast<int>(std::min<std::size_t>(slots, 6)) - 1));
        for (const Generated& g : all) CHECK(g.ids == all[0].ids);
    }
    std::vector<Request> requests;
    for (int i = 0; i < 4; i++) {
        std::vector<TokenId> longer = prompt;
        for (int k = 0; k < 3; k++) longer.push_back((i + k) % 4);
        requests.push_back(request_of(longer, 5));
    }
    FakeSource source(64, 5, mixed, 2);
    tell_all(source, tokenizer, requests);
    CHECK(source.read <= 33 + 3 * 3);
}

TEST_CASE("tokens that were written are read again where another text's prompt holds them") {
    FakeTokenizer tokenizer(letters);
    const std::vector<TokenId> prompt = some_tokens(1, 20);
    FakeSource first(64, 5, mixed);
    std::vector<TokenId> longer = prompt;
    const Generated told = tell_all(first, tokenizer, {request_of(prompt, 10)})[0];
    longer.insert(longer.end(), told.ids.begin(), told.ids.end());
    FakeSource source(64, 5, mixed);
    tell_all(source, tokenizer, {request_of(prompt, 10), request_of(longer, 3)});
    CHECK(source.read == 30);  // reading and writing round differently
}

TEST_CASE("a prompt that was read before the texts begin is not read again") {
    FakeTokenizer tokenizer(letters);
    FakeSource source(64, 5, mixed, 2);
    Generator generator(source, tokenizer);
    const std::vector<TokenId> prompt = some_tokens(2, 12);
    CHECK(generator.read(prompt).size() == 5);
    Request request = request_of(prompt, 4);
    request.emit = [](std::optional<TokenId>, std::string_view) {};
    generator.run({request, request});
    CHECK(source.read == 12);
    CHECK(generator.totals().read == 12);
    CHECK(generator.totals().written == 8);
}

namespace {

/// Guesses what `rule` says, but for every third token.
class PartlyRight : public Drafter {
  public:
    void draft(const Continuation& text, std::size_t most, std::vector<TokenId>& out) override {
        std::vector<TokenId> all = text.text();
        for (std::size_t i = 0; i < most; i++) {
            TokenId id = mixed(all);
            if (all.size() % 3 == 0) id = (id + 1) % 4;
            all.push_back(id);
            out.push_back(id);
        }
    }
};

struct Drafted {
    std::vector<std::vector<TokenId>> ids;
    std::vector<GenerateEnd> ends;
    GenerateTotals totals;
    int runs = 0;
};

Drafted drafted(const std::vector<Request>& requests, std::size_t slots, const MakeDrafter& drafter) {
    FakeTokenizer tokenizer(letters);
    FakeSource source(40, 5, mixed, slots);
    Generator generator(source, tokenizer, drafter);
    Drafted told;
    told.ids.resize(requests.size()), told.ends.resize(requests.size());
    std::vector<Request> all = requests;
    for (std::size_t i = 0; i < all.size(); i++) {
        all[i].emit = [](std::optional<TokenId>, std::string_view) {};
        all[i].done = [&told, i](const Generated& g) { told.ids[i] = g.ids, told.ends[i] = g.end; };
    }
    generator.run(all);
    told.totals = generator.totals();
    told.runs = source.runs;
    return told;
}

}  // namespace

TEST_CASE("guesses change neither a text nor its end, whatever they are and how many texts there are") {
    std::vector<Request> requests;
    for (int i = 0; i < 7; i++) {
        requests.push_back(request_of(some_tokens(i, 4 + 3 * i), i == 4 ? 200 : 9 + i));
        requests.back().options.sampler.temperature = i % 2 ? 0 : 4;  // 4: the rule is often not followed
        requests.back().options.sampler.seed = static_cast<std::uint64_t>(i);
        requests.back().options.shift = i == 2 || i == 5;
        if (i == 5) requests.back().options.tokens = 90, requests.back().options.keep = 3;
        if (i == 6) requests.back().options.stops = {"cab", "aab"};
    }
    for (std::size_t slots : {1, 3, 16}) {
        const Drafted plain = drafted(requests, slots, {});
        CHECK(plain.ends[4] == GenerateEnd::context);
        const Drafted right = drafted(requests, slots, [] { return std::make_unique<PartlyRight>(); });
        const Drafted lookup = drafted(requests, slots, [] { return std::make_unique<LookupDrafter>(); });
        for (const Drafted* other : {&right, &lookup}) {
            CHECK(other->ids == plain.ids);
            CHECK(other->ends == plain.ends);
            CHECK(other->totals.drafted >= other->totals.accepted);
        }
        CHECK(right.totals.accepted > 0);
        CHECK(right.runs < plain.runs);
    }
}

TEST_CASE("a text that repeats itself is guessed from itself, and takes few runs") {
    FakeTokenizer tokenizer(letters);
    auto counts = [](const std::vector<TokenId>& held) {
        return static_cast<TokenId>(held.size() * 5 / 2 % 4);
    };
    FakeSource source(200, 5, counts);
    Generator generator(source, tokenizer, [] { return std::make_unique<LookupDrafter>(); });
    Request request = request_of(some_tokens(0, 3), 150);
    request.options.sampler.temperature = 0;
    request.emit = [](std::optional<TokenId>, std::string_view) {};
    generator.run({request});
    CHECK(source.runs < 40);
    CHECK(generator.totals().written == 150);
    CHECK(generator.totals().accepted > 110);
}

TEST_CASE(
    "a text without end is the same where only its newest part is remembered, with guesses and without") {
    FakeTokenizer tokenizer(letters);
    for (bool guesses : {false, true}) {
        CAPTURE(guesses);
        Request request = request_of(some_tokens(5, 13), 500);
        request.options.sampler.temperature = 0;
        request.options.shift = true;
        request.options.keep = 4;
        std::vector<TokenId> given[2];
        Generated results[2];
        for (int limited : {0, 1}) {
            FakeSource source(20, 5, mixed);
            Generator generator(
                source, tokenizer,
                guesses ? MakeDrafter([] { return std::make_unique<LookupDrafter>(); }) : MakeDrafter());
            request.options.remember = limited ? 30 : -1;
            request.emit = [&](std::optional<TokenId> id, std::string_view) {
                if (id) given[limited].push_back(*id);
            };
            request.done = [&](const Generated& result) { results[limited] = result; };
            generator.run({request});
        }
        CHECK(given[0].size() == 500);
        CHECK(given[1] == given[0]);
        CHECK(results[0].ids == given[0]);
        CHECK(results[0].tokens == 500);
        CHECK(results[1].tokens == 500);
        // What was forgotten, a context's half at a time, is not told again.
        CHECK(results[1].ids.size() >= 30);
        CHECK(results[1].ids.size() < 30 + 20);
        CHECK(std::equal(results[1].ids.rbegin(), results[1].ids.rend(), given[1].rbegin()));
    }
}

TEST_CASE("a shift keeps the first tokens that it is told to, and a long prompt loses its middle") {
    FakeTokenizer tokenizer(letters);
    FakeSource source(20, 5, mixed);
    std::vector<TokenId> prompt = some_tokens(5, 33);
    prompt[0] = 3, prompt[1] = 3, prompt[2] = 3, prompt[3] = 3;
    Request request = request_of(prompt, 50);
    request.options.shift = true;
    request.options.keep = 4;
    CHECK(tell_all(source, tokenizer, {request})[0].ids.size() == 50);
    CHECK(std::vector<TokenId>(source.held.begin(), source.held.begin() + 4) == std::vector<TokenId>(4, 3));
    FakeSource other(20, 5, mixed);
    Generator generator(other, tokenizer);
    request.options.tokens = 0;
    request.emit = [](std::optional<TokenId>, std::string_view) {};
    generator.run({request});
    std::vector<TokenId> expected(4, 3);
    expected.insert(expected.end(), prompt.end() - 8, prompt.end());
    CHECK(other.held == expected);
    for (std::int64_t context : {1, 2, 3}) {  // as small as can be
        FakeSource tiny(context, 5, mixed);
        CHECK(tell_all(tiny, tokenizer, {[&] {
                           Request r = request;
                           r.options.tokens = 12;
                           return r;
                       }()})[0]
                  .ids.size() == 12);
    }
}

TEST_CASE("a grammar allows no end token where those are ignored, and a text that was stopped is not whole") {
    FakeTokenizer tokenizer({"a", "b", ""});
    tokenizer.end = 2;
    GenerateOptions options = up_to(5);
    options.grammar =
        std::make_shared<TokenConstraint>(read_gbnf("root ::= \"a\" | \"a\" root", "g"), tokenizer,
                                          std::make_shared<GrammarVocabulary>(tokenizer), "g");
    FakeSource ends(100, 3, recite({2})), goes_on(100, 3, recite({0}));
    const Told ended = tell(ends, tokenizer, {1}, options);
    CHECK(ended.ids == std::vector<TokenId>{0, 2});
    CHECK(ended.result.complete == true);
    options.ignore_end = true;
    CHECK(tell(ends, tokenizer, {1}, options).ids == std::vector<TokenId>(5, 0));
    options.ignore_end = false;
    options.stops = {"aa"};
    const Told stopped = tell(goes_on, tokenizer, {1}, options);
    CHECK(stopped.result.end == GenerateEnd::stop);
    CHECK(stopped.result.complete == false);
}

TEST_CASE("a signal while prompts are read leaves what was read before, and going on gives the same texts") {
    install_stop_signals();
    FakeTokenizer tokenizer(letters);
    std::vector<Request> requests;
    for (int i : {1, 2}) requests.push_back(request_of(some_tokens(i, 700), 6));
    FakeSource undisturbed(800, 5, mixed, 2);
    const std::vector<Generated> expected = tell_all(undisturbed, tokenizer, requests);
    for (std::size_t leaves : {FakeSource::whole, std::size_t{100}, std::size_t{0}}) {
        CAPTURE(leaves);
        FakeSource source(800, 5, mixed, 2);
        source.stops_at = 2;  // 512 tokens of each are read at once
        source.stop_leaves = leaves;
        Generator generator(source, tokenizer);
        std::vector<Generated> told(2);
        for (std::size_t i = 0; i < 2; i++) {
            requests[i].options.sampler.temperature = 0;
            requests[i].emit = [](std::optional<TokenId>, std::string_view) {};
            requests[i].done = [&told, i](const Generated& result) { told[i] = result; };
        }
        generator.run(requests);
        const std::size_t held = std::min<std::size_t>(512, leaves);
        for (std::size_t i = 0; i < 2; i++) {
            CHECK(told[i].end == GenerateEnd::interrupted);
            CHECK(told[i].ids.empty());
            CHECK(source.all[i].size() == held);
            CHECK(std::equal(source.all[i].begin(), source.all[i].end(), requests[i].prompt.begin()));
        }
        forget_interrupt();
        const int read = source.read;
        generator.run(requests);
        CHECK(source.read - read == 2 * (700 - static_cast<int>(held)));
        for (std::size_t i = 0; i < 2; i++) CHECK(told[i].ids == expected[i].ids);
    }
}
