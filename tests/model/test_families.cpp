// Models of the families in models/architectures, held to the logits that llama.cpp gave for the same files
// (families.json; llama_logits.cc records them).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "encoder_files.h"
#include "family_files.h"
#include "model/architectures.h"
#include "model/engine/engine.h"
#include "support.h"

using namespace linnet;

namespace {

/// Logits after each token, read and written.
std::vector<std::vector<float>> forced_logits(const std::string& path, std::span<const TokenId> tokens) {
    constexpr std::size_t read = 37;
    Engine engine(Model::open(path), {.context = 256, .threads = 2, .batch = 16, .sequences = 2});
    std::vector<std::vector<float>> rows;
    auto write = [&](Sequence& sequence, std::span<const TokenId> some) {
        for (; !some.empty();) {
            std::size_t n =
                std::min<std::size_t>(some.size(), static_cast<std::size_t>(engine.most_written()));
            const Engine::Work work[] = {{&sequence, some.first(n), true}};
            engine.run(work, Phase::write);
            std::span<const float> all = engine.logits(0);
            std::size_t v = all.size() / n;
            for (std::size_t i = 0; i < n; i++)
                rows.emplace_back(all.begin() + i * v, all.begin() + (i + 1) * v);
            some = some.subspan(n);
        }
    };
    Sequence first = engine.start(), second = engine.start();
    write(first, tokens.first(read - 1));
    std::span<const float> last = second.append(tokens.first(read), Phase::read);
    rows.emplace_back(last.begin(), last.end());
    write(second, tokens.subspan(read));
    return rows;
}

/// Of the recorded numbers' deviation: the root mean square of the differences, and how far below our best
/// logit that of llama.cpp's best token lies at worst.
struct Distance {
    double rms = 0, top = 0;
};

Distance distance(const std::vector<std::vector<float>>& ours, const nlohmann::json& theirs) {
    double deviation = theirs["deviation"];
    Distance d;
    std::size_t count = 0;
    for (std::size_t p = 0; p < ours.size(); p++) {
        auto probes =
            test::family_probes(static_cast<std::int64_t>(p), static_cast<std::int64_t>(ours[p].size()));
        for (std::int32_t id : probes)
            d.rms += std::pow(ours[p][static_cast<std::size_t>(id)] / deviation -
                                  theirs["logits"][count++].get<double>() / 1000,
                              2);
        float best = *std::max_element(ours[p].begin(), ours[p].end());
        d.top = std::max(d.top, (best - ours[p][theirs["top"][p].get<std::size_t>()]) / deviation);
    }
    REQUIRE(count == theirs["logits"].size());
    d.rms = std::sqrt(d.rms / static_cast<double>(count));
    return d;
}

}  // namespace

TEST_CASE("files of every family get llama.cpp's logits") {
    test::Scratch scratch;
    const char* keep = std::getenv("LINNET_FAMILY_FILES");  // a folder for llama_logits.cc to read them from
    std::string folder = keep ? keep : scratch.path;
    auto recorded = nlohmann::json::parse(test::read_text("tests/model/families.json"));
    auto tokens = test::family_tokens();
    CHECK(recorded["tokens"].get<std::vector<std::int32_t>>() == tokens);
    for (const test::FamilyFile& file : test::family_files()) {
        std::string path = folder + "/" + file.name + ".gguf";
        CAPTURE(file.name);
        test::write_family_file(file, path);
        if (keep) continue;
        REQUIRE_MESSAGE(recorded["files"].contains(file.name), "no recorded numbers");
        try {
            Distance d = distance(forced_logits(path, tokens), recorded["files"][file.name]);
            if (std::getenv("LINNET_FAMILY_ERRORS"))
                std::printf("%-28s %.5f %.5f\n", file.name.c_str(), d.rms, d.top);
            CHECK(d.rms < 0.02);  // llama.cpp keeps keys and values as f16
            CHECK(d.top < 0.02);
        } catch (const Error& error) {
            FAIL_CHECK(error.what());
        }
    }
}

TEST_CASE("every architecture has files of its own here") {
    for (const Architecture* a : architectures()) {
        if (!a->config_key.empty()) continue;
        bool found = false;
        for (const test::FamilyFile& file : test::family_files()) found |= file.arch == a->name;
        for (const test::EncoderFile& file : test::encoder_files()) found |= file.arch == a->name;
        CHECK_MESSAGE(found, a->name);
    }
}

TEST_CASE(
    "a file of any family that lacks a tensor or a key is refused by its name, or means something else" *
    doctest::test_suite("long")) {
    test::Scratch scratch;
    std::string path = scratch / "m.gguf";
    for (const test::FamilyFile& file : test::family_files()) {
        if (file.layers > 8) continue;
        test::write_family_file(file, path);
        std::vector<std::string> names;
        std::string prefix = file.arch + ".";
        {
            Gguf whole(path);
            for (const GgufTensor& t : whole.tensors())
                if (!t.name.starts_with("blk.") || t.name.starts_with("blk.1.")) names.emplace_back(t.name);
            for (const auto& [key, value] : whole.values())
                if (key.starts_with(prefix)) names.emplace_back(key.substr(prefix.size()));
        }
        for (const std::string& name : names) {
            CAPTURE(file.name);
            CAPTURE(name);
            test::write_family_file(file, path, name);
            try {
                Model::open(path);
                // Tied embeddings, an absent bias, a default: all others were missed.
                bool optional = name.find("blk.") == std::string::npos || name.ends_with(".bias");
                CHECK_MESSAGE(optional, "opened");
            } catch (const Error& error) {
                CHECK(error.exit() == Exit::input);
                CHECK(std::string(error.what()).starts_with(path));
            }
        }
    }
}

namespace {

/// How a file of `arch` with other keys, or with other tensors, is refused.
std::string refused(test::FamilyFile file) {
    test::Scratch scratch;
    test::write_family_file(file, scratch / "m.gguf");
    return test::refusal([&] { Model::open(scratch / "m.gguf"); });
}

}  // namespace

TEST_CASE("keys and tensors that contradict each other are refused by name") {
    auto says = [](const std::string& line, const std::string& part) {
        CHECK_MESSAGE(test::has(line, part), line);
    };
    CHECK(refused({.name = "a", .arch = "llama"}) == "accepted");
    says(refused({.name = "a", .arch = "llama", .heads = 3}),
         "llama.attention.head_count_kv: expected a divisor of heads (3)");
    says(refused({.name = "a", .arch = "llama", .heads = 5, .kv_heads = 5}),
         "llama.attention.head_count: expected a divisor of width (64), got 5");
    says(refused({.name = "a", .arch = "llama", .rotary = 18}),
         "llama.rope.dimension_count: expected an even number up to head_width (16), got 18");
    says(refused({.name = "a", .arch = "gptneox", .norm = "layer", .rotary = 7}),
         "use_parallel_residual: expected a value, got no such key");
    says(refused({.name = "a", .arch = "phi2", .norm = "layer", .rotary = 7}),
         "phi2.rope.dimension_count: expected an even");
    says(refused({.name = "a", .arch = "deci", .kv_by_layer = {2, 1, 2, 2}}),
         "deci.attention.head_count_kv: expected 3 values, one per layer, got 4");
    says(refused({.name = "a", .arch = "llama", .kv_by_layer = {2, 1, 2}}),
         "llama.attention.head_count_kv: expected the same value for all layers, got [2,1,2]");
    says(refused({.name = "a", .arch = "llama", .kv_by_layer = {2, 2}}),
         "llama.attention.head_count_kv: expected 3 values, one per layer, got 2");
    says(refused({.name = "a", .arch = "llama", .tensors = {{"blk.{}.attn_norm.bias", 64}}}),
         "blk.0.attn_norm.bias: expected a tensor of the architecture llama, got an unknown one");
    CHECK(refused({.name = "a", .arch = "llama", .tensors = {{"blk.1.attn_q.bias", 64}}}) == "accepted");
    says(refused({.name = "a", .arch = "llama", .tensors = {{"blk.1.attn_q.bias", 32}}}),
         "blk.1.attn_q.bias: expected shape [64], got [32]");
    says(refused({.name = "a", .arch = "gemma2", .keys = {{"attention.sliding_window", 0U}}}),
         "gemma2.attention.sliding_window: expected a positive number, got 0");
    says(refused({.name = "a", .arch = "llama", .tensors = {{"rope_freqs.weight", 6}}}),
         "rope_freqs.weight: expected shape [8], got [6]");
    says(refused({.name = "a", .arch = "llama", .keys = {{"rope.scaling.type", "su"}}}),
         "llama.rope.scaling.type: expected one of linear, longrope, none, yarn, got su");
    says(refused({.name = "a",
                  .arch = "llama",
                  .keys = {{"rope.scaling.factor", 2.0F}, {"rope.scale_linear", 4.0F}}}),
         "got ");
    says(refused({.name = "a", .arch = "granite", .keys = {{"logit_scale", 0.0F}}}),
         "granite.logit_scale: expected a number other than 0, got 0.0");
    says(refused({.name = "a", .arch = "qwen3"}), "blk.0.attn_q_norm.weight: expected a tensor, got none");
    says(refused({.name = "a", .arch = "llama", .keys = {{"expert_count", 4U}}}),
         "llama.expert_used_count: expected 1 to count (4), got 0");
    says(refused({.name = "a", .arch = "qwen3moe", .qk_norm = "head", .experts = 4, .used = 5}),
         "qwen3moe.expert_used_count: expected 1 to count (4), got 5");
    says(refused({.name = "a", .arch = "qwen3moe", .qk_norm = "head", .experts = 4}),  // width / 0
         "qwen3moe.expert_used_count: expected 1 to count (4), got 0");
    says(refused({.name = "a", .arch = "qwen2moe", .experts = 4, .used = 2, .expert_ffn = 32}),
         "blk.0.ffn_gate_shexp.weight: expected a tensor, got none");
    test::FamilyFile lead{.name = "a", .arch = "deepseek", .kv_heads = 4, .experts = 4, .used = 2};
    lead.expert_ffn = 32, lead.shared_ffn = 32, lead.dense = 3;
    lead.keys = {{"expert_shared_count", 1U}, {"expert_weights_scale", 1.0F}};
    says(refused(lead),
         "deepseek.leading_dense_block_count: expected fewer than layers (3), beside one count, got 3");
    lead.dense = 1, lead.keys[0].second = 0xffffffffU;
    says(refused(lead), "expert_shared_count");
    test::FamilyFile none{.name = "a", .arch = "llama", .kv_key = false};
    none.keys = {{"attention.head_count_kv", 0U}};
    says(refused(none), "llama.attention.head_count_kv: expected a positive number, got 0");
    auto windows = [](test::KeyValue which) {
        return refused({.name = "a",
                        .arch = "gemma3",
                        .tied = true,
                        .qk_norm = "head",
                        .keys = {{"attention.sliding_window", 8U},
                                 {"attention.sliding_window_pattern", std::move(which)}}});
    };
    const std::string marks = "gemma3.attention.sliding_window_pattern: expected ";
    says(windows(std::vector<bool>{true, false}), marks + "3 values, one per layer, got 2");
    says(windows(std::vector<std::int32_t>{1, 0, 1}),
         marks + "a number, or true and false for each layer, got [1,0,1]");
    says(windows(std::vector<bool>{}), marks + "true and false for each layer, got an empty array");
    says(windows(5000U), "gemma3.attention.sliding_window_pattern': expected an integer from 0 to 4096");
    says(windows(true), "gemma3.attention.sliding_window_pattern");
}
