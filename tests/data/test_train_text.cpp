#include "data/train_text.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "support.h"

using namespace linnet;

TEST_CASE("training on files sees every document once, however it is packed or parted") {
    test::Scratch s;
    std::string text, lines;
    for (int i = 0; i < 40000; i++) {
        std::string word = "word" + std::string(1, static_cast<char>('a' + i % 17)) + " goes" +
                           std::string(1, static_cast<char>('a' + i % 23)) + (i % 97 == 0 ? "\n" : " ");
        text += word;
    }
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = training_cut(text, at + 1000);
        std::string piece = text.substr(at, end - at);
        for (std::size_t n; (n = piece.find('\n')) != std::string::npos;) piece.replace(n, 1, "\\n");
        lines += "{\"text\":\"" + piece + "\"}\n";
        at = end;
    }
    test::write_text(s / "a.txt", text);
    test::write_text(s / "b.jsonl", lines);
    auto train = [&](const std::string& kind, const std::string& file, std::size_t piece) {
        TrainOptions options;
        options.kind = kind;
        options.vocab_size = kind == "spm" ? 330 : 320;
        options.threads = 2;
        VocabularyTrainer trainer(options);
        ReadOptions read;
        read.piece = piece;
        CHECK(train_on_files(trainer, {s / file}, read) == 0);
        CHECK(trainer.bytes() == text.size());
        return trainer.finish().tokens;
    };
    auto whole = train("bpe", "a.txt", 1 << 20);
    CHECK(train("bpe", "a.txt", 3000) == whole);
    CHECK(train("bpe", "b.jsonl", 1 << 20) == whole);
    CHECK(train("spm", "a.txt", 3000) == train("spm", "a.txt", 1 << 20));
    VocabularyTrainer trainer({});
    CHECK_THROWS_AS(train_on_files(trainer, {s / "absent"}, {}), Error);
}
