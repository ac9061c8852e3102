// Encoders and encoder–decoders: llama.cpp's numbers, the same bits alone and in company, what is refused.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "encoder_files.h"
#include "model/encode/encoder_text.h"
#include "model/engine/engine.h"
#include "support.h"

using namespace linnet;
using linnet::test::refusal;

namespace {

double cosine(std::span<const float> a, const std::vector<double>& b) {
    double product = 0, of_a = 0, of_b = 0;
    for (std::size_t i = 0; i < a.size(); i++) {
        product += static_cast<double>(a[i]) * b[i];
        of_a += static_cast<double>(a[i]) * static_cast<double>(a[i]), of_b += b[i] * b[i];
    }
    return product / std::sqrt(of_a * of_b);
}

Pooling way_of(const std::string& name) {
    return name == "first" ? Pooling::first : name == "last" ? Pooling::last : Pooling::mean;
}

/// Of an encoder's file: how near its vector is to llama.cpp's.
double nearness(const std::shared_ptr<const Model>& model, const nlohmann::json& theirs) {
    Encoder encoder(model, 2);
    std::vector<EncoderInput> inputs(1);
    inputs[0].tokens = test::source_tokens();
    Pooling way = way_of(model->config().pooling);
    if (!theirs["pooled"].get<bool>()) way = Pooling::last;  // llama.cpp told the last row
    return cosine(encoder.vectors(inputs, way), theirs["embedding"].get<std::vector<double>>());
}

/// Of an encoder–decoder's: the root mean square of the logits' differences, of their deviation. The first
/// tokens are read, the rest written.
double distance(const std::shared_ptr<const Model>& model, const nlohmann::json& theirs) {
    Engine engine(model, {});
    Sequence sequence = engine.start();
    sequence.encode(test::source_tokens());
    const std::vector<std::int32_t> answer = test::answer_tokens();
    const auto v = static_cast<std::size_t>(model->config().vocabulary);
    double square = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < answer.size(); i++) {
        std::span<const float> logits =
            sequence.append({&answer[i], 1}, i < answer.size() / 2 ? Phase::read : Phase::write);
        for (std::size_t k = 0; k < 8; k++)
            square += std::pow(
                static_cast<double>(logits[(i * 7 + k * 61) % v]) - theirs["logits"][count++].get<double>(),
                2);
    }
    REQUIRE(count == theirs["logits"].size());
    return std::sqrt(square / static_cast<double>(count)) / theirs["deviation"].get<double>();
}

}  // namespace

TEST_CASE("encoders get llama.cpp's embeddings, and encoder-decoders its logits") {
    test::Scratch scratch;
    const char* keep =
        std::getenv("LINNET_FAMILY_FILES");  // a folder for llama_encoders.cc to read them from
    const std::string folder = keep ? keep : scratch.path;
    nlohmann::json recorded;
    if (!keep) recorded = nlohmann::json::parse(test::read_text("tests/model/encoders.json"));
    for (const test::EncoderFile& file : test::encoder_files()) {
        const std::string path = folder + "/" + file.name + ".gguf";
        CAPTURE(file.name);
        test::write_encoder_file(file, path);
        if (keep) continue;
        REQUIRE_MESSAGE(recorded.contains(file.name), "no recorded numbers");
        auto model = Model::open(path);
        const nlohmann::json& theirs = recorded[file.name];
        const bool encoder = model->config().is_encoder();
        const double figure = encoder ? nearness(model, theirs) : distance(model, theirs);
        if (std::getenv("LINNET_FAMILY_ERRORS")) std::printf("%-28s %.7f\n", file.name.c_str(), figure);
        if (encoder)
            CHECK(figure >= 0.9999);
        else
            CHECK(figure < 0.02);
    }
}

TEST_CASE("a text's vector has the same bits alone and in company, for any number of threads") {
    test::Scratch scratch;
    for (const char* name : {"bert-mean", "nomic", "t5encoder-gated"}) {
        CAPTURE(name);
        const std::string path = scratch / "m.gguf";
        test::write_encoder_file(test::encoder_file(name), path);
        auto model = Model::open(path);
        std::vector<EncoderInput> inputs(5);
        const std::vector<std::int32_t> ids = test::source_tokens();
        for (std::size_t i = 0; i < inputs.size(); i++)
            inputs[i].tokens.assign(ids.begin() + static_cast<std::ptrdiff_t>(i),
                                    ids.begin() + static_cast<std::ptrdiff_t>(3 + 11 * i % 40 + i));
        Encoder together(model, 3);
        REQUIRE(together.fitting(inputs) == inputs.size());
        std::span<const float> all = together.vectors(inputs, Pooling::mean);
        const std::size_t width = all.size() / inputs.size();
        const std::vector<float> kept(all.begin(), all.end());
        Encoder alone(model, 1, 64);
        for (std::size_t i = 0; i < inputs.size(); i++) {
            std::span<const float> one = alone.vectors({&inputs[i], 1}, Pooling::mean);
            CHECK(std::memcmp(one.data(), kept.data() + i * width, width * sizeof(float)) == 0);
        }
    }
}

TEST_CASE("an answer has the same bits alone and in company, and a fork goes on as its origin") {
    test::Scratch scratch;
    const std::string path = scratch / "m.gguf";
    test::write_encoder_file(test::encoder_file("t5-gated"), path);
    auto model = Model::open(path);
    const std::vector<std::int32_t> ids = test::source_tokens(), answer = test::answer_tokens();
    auto written = [&](Sequence& sequence) {
        std::vector<float> all;
        for (std::size_t i = 1; i < 6; i++) {
            std::span<const float> logits = sequence.append({&answer[i], 1}, Phase::write);
            all.insert(all.end(), logits.begin(), logits.end());
        }
        return all;
    };
    EngineOptions one;
    one.threads = 1;
    Engine alone(model, one);
    Sequence first = alone.start();
    first.encode(std::span(ids).first(17));
    first.append(std::span(answer).first(1), Phase::read);
    const std::vector<float> expected = written(first);

    EngineOptions several;
    several.sequences = 3, several.threads = 2;
    Engine engine(model, several);
    Sequence a = engine.start(), b = engine.start();
    b.encode(ids);
    a.encode(std::span(ids).first(17));
    const Engine::Work work[] = {{&b, std::span(answer).first(1)}, {&a, std::span(answer).first(1)}};
    engine.run(work, Phase::read);
    Sequence forked = engine.start();
    forked.become(a);
    CHECK(written(a) == expected);
    CHECK(written(forked) == expected);
    a.encode(std::span(ids).first(9));  // another source: another answer
    a.append(std::span(answer).first(1), Phase::read);
    CHECK(written(a) != expected);
}

TEST_CASE("what an encoder cannot do is refused by name") {
    test::Scratch scratch;
    const std::string path = scratch / "m.gguf";
    test::write_encoder_file(test::encoder_file("bert-mean"), path);
    auto bert = Model::open(path);
    CHECK(test::has(refusal([&] { Engine engine(bert, {}); }), "model.kind: expected decoder or"));
    Encoder encoder(bert, 1);
    std::vector<EncoderInput> inputs(1);
    CHECK(test::has(refusal([&] { encoder.vectors(inputs, Pooling::mean); }), "at least one token"));
    inputs[0].tokens.assign(129, 5);
    CHECK(test::has(refusal([&] { encoder.vectors(inputs, Pooling::mean); }),
                    "context: expected at most 128 tokens, got 129"));
    inputs[0].tokens.assign(1, 100000);
    CHECK(test::has(refusal([&] { encoder.vectors(inputs, Pooling::mean); }), "token id: expected 0 to"));
    test::write_encoder_file(test::encoder_file("t5-plain"), path);
    auto t5 = Model::open(path);
    CHECK(test::has(refusal([&] { Encoder other(t5, 1); }),
                    "model.kind: expected encoder, got encoder-decoder"));
    Engine engine(t5, {});
    Sequence sequence = engine.start();
    const std::int32_t start = 0;
    CHECK(test::has(refusal([&] { sequence.append({&start, 1}, Phase::read); }), "need a source"));
    CHECK(test::has(refusal([&] { sequence.encode({}); }), "source: expected 1 to 128 tokens"));
    CHECK(test::has(refusal([&] { sequence.encode(std::vector<TokenId>(129, 5)); }), "got 129"));
}

TEST_CASE("a pair's second text is of segment 1, and each word's first row is wanted") {
    test::Scratch scratch;
    test::write_encoder_file(test::encoder_file("bert-mean"), scratch / "m.gguf");
    auto model = Model::open(scratch / "m.gguf");
    const Tokenizer& words = model->tokenizer();
    const EncoderMarks marks(words);
    REQUIRE((marks.mask && marks.first && marks.separator));
    EncoderInput pair = pair_input(words, marks, "the cats sat", "the dogs");
    CHECK(pair.tokens.front() == *marks.first);
    CHECK(pair.tokens.back() == *marks.separator);
    CHECK(pair.segments.size() == pair.tokens.size());
    const auto middle =
        std::find(pair.tokens.begin(), pair.tokens.end(), *marks.separator) - pair.tokens.begin();
    for (std::size_t i = 0; i < pair.segments.size(); i++)
        CHECK(pair.segments[i] == (static_cast<std::ptrdiff_t>(i) > middle));
    EncoderInput tagged = words_input(words, marks, "the zebras  sat");
    CHECK(tagged.wanted.size() == 3);
    CHECK(tagged.wanted[0] == 1);
    CHECK(tagged.wanted[2] + 2 == static_cast<std::int32_t>(tagged.tokens.size()));
    CHECK(text_input(words, "the cats", false).tokens ==
          pair_input(words, marks, "the cats", std::nullopt).tokens);
}
