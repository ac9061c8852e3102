// What grammars and schemas promise, for random ones: whatever is written parses, and nothing ends in a dead
// end.
#include <doctest/doctest.h>

#include "base/error.h"
#include "generate/grammar/gbnf.h"
#include "generate/grammar/json_schema.h"
#include "generate/grammar/support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

std::shared_ptr<TokenConstraint> constraint_of(const Grammar& grammar, const Tokenizer& tokenizer) {
    return std::make_shared<TokenConstraint>(grammar, tokenizer,
                                             std::make_shared<GrammarVocabulary>(tokenizer), "test");
}

/// The mask, found token by token.
void check_mask(GrammarCursor cursor, const FakeTokenizer& tokenizer) {
    const TokenMask mask = cursor.mask(false);
    for (TokenId id = 0; id < tokenizer.size(); id++) {
        bool allowed = tokenizer.is_end(id) ? cursor.may_end() : false;
        if (!tokenizer.piece(id).empty()) {
            GrammarCursor tried = cursor;
            allowed = tried.advance(tokenizer.piece(id));
        }
        CHECK_MESSAGE(mask.has(static_cast<std::size_t>(id)) == allowed, id);
    }
    CHECK((mask.count() > 0 || cursor.must_end()));
}

}  // namespace

TEST_CASE("texts of random grammars match them by trying everything, and every example is allowed") {
    const FakeTokenizer bytes = byte_vocabulary(), characters = character_vocabulary();
    std::size_t finished = 0, all = 0, refused = 0;
    for (std::size_t round = 0; round < rounds(150); round++) {
        Dice dice(round);
        const RandomGrammar random = RandomGrammar::make(dice);
        const std::string gbnf = random.gbnf(dice);
        CAPTURE(round);
        CAPTURE(gbnf);
        const Grammar grammar = read_gbnf(gbnf, "test");
        for (const FakeTokenizer* tokenizer : {&bytes, &characters}) {
            std::shared_ptr<TokenConstraint> constraint;
            try {
                constraint = constraint_of(grammar, *tokenizer);
            } catch (const Error&) {
                CHECK(tokenizer == &characters);  // a text needs what it cannot spell
                refused++;
                continue;
            }
            const Written written = write_random(constraint, *tokenizer, dice, 120);
            all++;
            if (written.result.end != GenerateEnd::length)
                CHECK(written.result.complete == true);
            else
                CHECK(written.result.complete == random.matches(code_points(written.text)));
            if (!*written.result.complete) continue;
            finished++;
            CHECK_MESSAGE(random.matches(code_points(written.text)), written.text);
        }
        const std::shared_ptr<TokenConstraint> constraint = constraint_of(grammar, bytes);
        for (int i = 0; i < 3; i++) {
            const std::string text = [&] {
                std::string utf8;
                for (char32_t c : random.example(dice)) utf8 += utf8_of(c);
                return utf8;
            }();
            if (text.size() > 300) continue;  // a recursion of several meanings costs its depth cubed
            GrammarCursor cursor(constraint, true);
            const std::size_t checked = text.empty() ? 0 : dice.below(text.size());
            for (std::size_t k = 0; k < text.size(); k++) {
                if (k == checked && round < 100) check_mask(cursor, bytes);
                const bool allowed = cursor.advance(text.substr(k, 1));
                if (!allowed) break;
            }
            CHECK_MESSAGE(cursor.may_end(), text);
            CHECK_FALSE(constraint->forgot());
        }
    }
    CHECK(finished > all * 9 / 10);
    CHECK(refused < all / 2);
}

TEST_CASE("texts of random schemas are JSON that fulfils them") {
    const FakeTokenizer bytes = byte_vocabulary();
    std::size_t finished = 0, all = 0;
    for (std::size_t round = 0; round < rounds(150); round++) {
        Dice dice(round + 1'000'000);
        const nlohmann::ordered_json schema = random_schema(dice);
        const std::string text = schema.dump();
        CAPTURE(round);
        CAPTURE(text);
        const Grammar grammar = read_json_schema(text, "test");
        const Written written = write_random(constraint_of(grammar, bytes), bytes, dice, 500);
        all++;
        if (!*written.result.complete) continue;
        finished++;
        nlohmann::ordered_json value;
        CHECK_NOTHROW_MESSAGE(value = nlohmann::ordered_json::parse(written.text), written.text);
        CHECK_MESSAGE(fulfils(value, schema, schema), written.text);
    }
    CHECK(finished > all * 9 / 10);
}

TEST_CASE("masks of schemas are those of trying every token") {
    const FakeTokenizer bytes = byte_vocabulary();
    for (std::size_t round = 0; round < 25; round++) {
        Dice dice(round + 5000);
        const std::string schema = random_schema(dice).dump();
        CAPTURE(schema);
        const std::shared_ptr<TokenConstraint> constraint =
            constraint_of(read_json_schema(schema, "test"), bytes);
        GrammarCursor cursor(constraint, true);
        for (int step = 0; step < 12 && !cursor.must_end(); step++) {
            check_mask(cursor, bytes);
            const TokenMask mask = cursor.mask(false);
            std::vector<TokenId> allowed;
            for (TokenId id : mask.list())
                if (!bytes.piece(id).empty()) allowed.push_back(id);
            if (allowed.empty()) break;
            CHECK(cursor.advance(bytes.piece(allowed[dice.below(allowed.size())])));
        }
    }
}
