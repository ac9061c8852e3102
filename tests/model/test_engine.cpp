// A model written, opened and run: the same numbers however the tokens are handed in, and errors that name
// their place.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <thread>

#include "base/signals.h"
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "model/engine/engine.h"
#include "model/engine/states.h"
#include "model/small_models.h"
#include "model/trace/trace.h"
#include "model/weights.h"
#include "random_values.h"
#include "support.h"

using namespace linnet;
using linnet::test::Scratch;

namespace {

ModelConfig config_of(const std::string& kind, TokenId vocabulary, std::int64_t context,
                      std::int64_t window) {
    ModelConfig c;
    c.context = context, c.width = 32, c.layers = 2, c.heads = 4, c.vocabulary = vocabulary;
    if (kind == "llama") test::make_llama(c, 96);
    if (kind == "linnet") {
        c.norm.placement = "sandwich", c.position.kind = "sinusoidal", c.attention.window = window,
        c.ffn.activation = "relu";
    }
    if (kind == "scored") {
        c.position.kind = "none", c.attention.softcap = 2, c.attention.alibi = 8, c.attention.window = window;
        c.attention.globals = 2, c.attention.buckets = 4, c.attention.reach = 8;
    }
    if (kind == "values") {
        c.layers = 3, c.residual.first = "scalars",
        c.attention.value_embedding = PerLayer<std::int64_t>({2, 0});
        c.kv_heads = 2, c.position.kind = "rope", c.attention.qk_norm = "unit", c.norm.weight = false;
        c.embedding.norm = true, c.logits.softcap = 15, c.tie_embeddings = false, c.zero_init = true;
    }
    if (kind == "additive")
        c.attention.score = kind, c.kv_heads = 2, c.attention.window = window, c.position.kind = "rope";
    if (kind.starts_with("chosen")) {
        c.attention.window = window, c.attention.random = 1, c.attention.globals = 1;
        c.position.kind = "rope";
    }
    if (kind == "chosen, additive") c.attention.score = "additive";
    if (kind == "linear-attention") c.mixer = kind;
    if (kind == "mamba" || kind == "hybrid" || kind == "lstm" || kind == "rwkv7") {
        c.mixer = kind, c.position.kind = "none", c.ssm.state = 5, c.ssm.rank = 3;
        if (kind == "hybrid")
            c.mixer = PerLayer<std::string>({"mamba", "attention", "mamba2"}), c.position.kind = "rope",
            c.layers = 3, c.ssm.heads = 4;
        if (kind == "mamba") c.norm.kind = "rms", c.ffn.kind = "none";
        if (kind == "rwkv7") c.ffn.kind = "channel-mix", c.embedding.norm = true, c.tie_embeddings = false;
    }
    resolve(c, kind);
    return c;
}

/// A model with random weights: its file's parts.
struct Made {
    TokenizerPtr tokenizer = train_tokenizer("byte", "text", 256, 1);
    ModelConfig config;
    TracedModel traced;
    std::vector<std::vector<float>> values;
    std::vector<Tensor> parameters;

    explicit Made(const std::string& kind, std::int64_t context = 40, std::int64_t window = 5)
        : config(config_of(kind, tokenizer->size(), context, window)),
          traced(trace(config, false)),
          values(test::random_values(traced.graph, 5, 0.2)),
          parameters(test::tensors_of(traced.graph, values)) {}
    void save(const std::string& path, DType type) const {
        save_model(path, config, traced.graph, parameters, *tokenizer, type, "test",
                   {{"note", "made by a test"}});
    }
};

/// An engine with one sequence.
struct Alone {
    Engine engine;
    Sequence sequence;
    Alone(std::shared_ptr<const Model> model, const EngineOptions& options)
        : engine(std::move(model), options), sequence(engine.start()) {}
    std::vector<float> read(std::span<const TokenId> ids) { return copy(sequence.append(ids, Phase::read)); }
    std::vector<float> write(TokenId id) { return copy(sequence.append({&id, 1}, Phase::write)); }
    static std::vector<float> copy(std::span<const float> l) { return {l.begin(), l.end()}; }
};

double distance(const std::vector<float>& a, const std::vector<float>& b) {
    double most = 0;
    for (std::size_t i = 0; i < a.size(); i++) most = std::max<double>(most, std::abs(a[i] - b[i]));
    return most;
}

const char* const kinds[] = {"gpt2", "llama", "linnet"};  // all that they keep are keys and values
const char* const all_kinds[] = {"gpt2",   "llama", "linnet", "values",           "mamba",
                                 "hybrid", "rwkv7", "lstm",   "linear-attention", "additive"};
const std::vector<TokenId> prompt{84, 104, 101, 32, 99, 97, 116, 32, 115, 97, 116, 46, 10, 65, 66, 67, 68};

std::string refusal(const std::string& path) {
    return test::refusal([&] { Model::open(path); });
}

}  // namespace

TEST_CASE("keys of blocks that are chosen stay in the state, however far behind the window they lie") {
    for (const char* kind : {"chosen", "chosen, additive"}) {
        CAPTURE(kind);
        test::Scratch s;
        const Made made(kind, 330);
        made.save(s / "m.gguf", DType::f32);
        std::shared_ptr<const Model> model = Model::open(s / "m.gguf");
        EngineOptions options;
        options.state = DType::f32;
        std::vector<TokenId> ids;
        for (int i = 0; i < 320; i++) ids.push_back(static_cast<TokenId>((i * 37 + i * i) % 256));
        Alone whole(model, options), parts(model, options);
        const std::vector<float> expected = whole.read(ids);
        parts.read(std::span(ids).first(290));
        std::vector<float> last;
        for (std::size_t i = 290; i < ids.size(); i++) last = parts.write(ids[i]);
        CHECK(distance(last, expected) < 1e-3);
        // A change of a token far behind the windows of all layers reaches the end where its block is chosen.
        ids[100] ^= 1;
        Alone other(model, options);
        CHECK(distance(other.read(ids), expected) > 0);
    }
}

TEST_CASE(
    "a prompt read in one piece, in batches or token by token leads to the same bits; writing it, nearly") {
    for (const char* kind : all_kinds) {
        Made made(kind);
        auto model = Model::view(made.config, made.tokenizer, made.parameters);
        for (DType state : state_types()) {
            Alone whole(model, {0, 1, 512, 1, state}), pieces(model, {0, 2, 5, 1, state}),
                single(model, {0, 1, 1, 1, state}), written(model, {0, 0, 512, 1, state});
            std::vector<float> expected = whole.read(prompt), last, off;
            INFO(kind << " " << info(state).name);
            CHECK(pieces.read(prompt) == expected);
            for (TokenId id : prompt) last = single.read({&id, 1}), off = written.write(id);
            CHECK(last == expected);
            CHECK(distance(off, expected) < (state == DType::f32 ? 2e-4 : 2e-2));
            // Going back and on again must give the very bits of going on.
            std::vector<float> next = whole.write(42);
            CHECK(whole.sequence.rewind(whole.sequence.position() - 1) ==
                  static_cast<std::int64_t>(prompt.size()));
            CHECK(whole.write(42) == next);
        }
    }
}

TEST_CASE("keys and values in fewer bits leave logits near those of f32, and take the memory they say") {
    for (const char* kind : kinds) {
        Made made(kind);
        auto model = Model::view(made.config, made.tokenizer, made.parameters);
        std::vector<float> exact = Alone(model, {0, 1, 512, 1, DType::f32}).read(prompt);
        auto off = [&](DType type) {
            return distance(Alone(model, {0, 1, 512, 1, type}).read(prompt), exact);
        };
        INFO(kind);
        CHECK(off(DType::f16) > 0);
        CHECK(off(DType::f16) < 0.01);
        CHECK(off(DType::q8_0) > off(DType::f16));
        CHECK(off(DType::q8_0) < 0.3);
        States f16(made.traced.graph, {40, 2, 0, DType::f16}),
            q8_0(made.traced.graph, {40, 2, 0, DType::q8_0});
        const std::int64_t planes = 2 * made.config.kv_heads.at(0);
        CHECK(f16.views()[0].slot_bytes ==
              static_cast<std::size_t>(planes * 40 * made.config.head_width * 2));
        CHECK(q8_0.views()[0].slot_bytes ==
              static_cast<std::size_t>(planes * 40 * 34));  // 8 in a block of 32
    }
}

TEST_CASE("a window's state goes round, with the same bits; what it has forgotten cannot be gone back to") {
    Made made("linnet", 1200, 9);
    auto model = Model::view(made.config, made.tokenizer, made.parameters);
    std::vector<TokenId> ids;
    for (int i = 0; i < 1100; i++) ids.push_back((i * 31 + i / 7) % 256);
    for (DType type : state_types()) {
        INFO(std::string(info(type).name));
        const States small(made.traced.graph, {1200, 1, 64, type}),
            large(made.traced.graph, {1200, 1, 0, type});
        CHECK(small.views()[0].positions == kernels().attention_ring);
        CHECK(large.views()[0].positions == 1200);
        Alone round(model, {0, 2, 64, 2, type}), whole(model, {0, 2, 1200, 2, type});
        CHECK(round.read(ids) == whole.read(ids));
        for (TokenId id : {1, 2, 3}) CHECK(round.write(id) == whole.write(id));
        Sequence fork = round.engine.start();
        fork.become(round.sequence);
        CHECK(round.sequence.rewind(1100) == 1100);
        CHECK(whole.sequence.rewind(1100) == 1100);
        CHECK(round.write(7) == whole.write(7));
        const TokenId last = 9;
        CHECK(whole.sequence.rewind(1100) == 1100);
        for (TokenId id : {1, 2, 3}) whole.write(id);
        CHECK(Alone::copy(fork.append({&last, 1}, Phase::write)) == whole.write(last));
        // The last run can be taken back whatever its length; far back, the sequence begins anew.
        const std::int64_t before = round.sequence.position();
        round.read(std::span(ids).first(64));
        CHECK(round.sequence.rewind(before) == before);
        CHECK(round.sequence.rewind(500) == 0);
        CHECK(round.sequence.position() == 0);
        whole.sequence.rewind(0);
        CHECK(round.read(prompt) == whole.read(prompt));
    }
}

TEST_CASE("summed losses are those of the logits") {
    Made made("llama");
    auto model = Model::view(made.config, made.tokenizer, made.parameters);
    Alone a(model, {0, 1, 6, 1, DType::f32}), b(model, {0, 1, 1, 1, DType::f32});
    double expected = 0;
    for (std::size_t i = 0; i + 1 < prompt.size(); i++) {
        std::vector<float> l = b.read({&prompt[i], 1});
        double sum = 0;
        for (float x : l) sum += std::exp(static_cast<double>(x));
        expected += std::log(sum) - static_cast<double>(l[static_cast<std::size_t>(prompt[i + 1])]);
    }
    CHECK(a.sequence.append_nll(prompt) == doctest::Approx(expected).epsilon(1e-5));
}

namespace {

/// The model's matrices as q8_0 (a scale of the largest magnitude / 127 per 32 weights), and the same weights
/// in f32.
struct Quantized {
    std::vector<std::vector<std::byte>> blocks;
    std::vector<std::vector<float>> plain;
    std::vector<Tensor> stored, loaded;

    explicit Quantized(const Made& made) : stored(made.parameters), loaded(made.parameters) {
        for (std::size_t p = 0; p < stored.size(); p++) {
            if (stored[p].shape.rank == 1 || stored[p].shape.dim[1] % 32) continue;
            const std::vector<float>& w = made.values[p];
            std::vector<std::byte>& to = blocks.emplace_back(w.size() / 32 * 34);
            for (std::size_t b = 0; b < w.size() / 32; b++) {
                float most = 0;
                for (std::size_t i = 0; i < 32; i++) most = std::max(most, std::abs(w[b * 32 + i]));
                std::uint16_t scale = f32_to_f16(most / 127);
                std::memcpy(&to[b * 34], &scale, 2);
                for (std::size_t i = 0; i < 32; i++)
                    to[b * 34 + 2 + i] = static_cast<std::byte>(
                        static_cast<std::int8_t>(std::lround(w[b * 32 + i] / f16_to_f32(scale))));
            }
            plain.emplace_back(w.size());
            kernels().load(static_cast<std::int64_t>(w.size()), DType::q8_0, to.data(), plain.back().data());
            stored[p] = {to.data(), DType::q8_0, stored[p].shape};
            loaded[p].data = plain.back().data();
        }
    }
};

/// What one sequence of an engine is to read and then to write.
struct Script {
    std::vector<TokenId> prompt, written;
};

Script script(int i) {
    Script s;
    for (int t = 0; t < 3 + (i * 7) % 19; t++) s.prompt.push_back((i * 31 + t * 11 + 7) % 256);
    for (int t = 0; t < 14; t++) s.written.push_back((i * 53 + t * 17 + 3) % 256);
    return s;
}

/// The logits of script 0 after its prompt and after every written token, alone.
std::vector<std::vector<float>> alone(const std::shared_ptr<const Model>& model,
                                      const EngineOptions& options) {
    Alone one(model, options);
    Script s = script(0);
    std::vector<std::vector<float>> out{one.read(s.prompt)};
    for (TokenId id : s.written) out.push_back(one.write(id));
    return out;
}

/// The same, while seven others join at different times, so that read and write runs alternate; its prompt is
/// cut after `cut` tokens; every third step it is forked or taken back and goes on from there.
std::vector<std::vector<float>> in_company(const std::shared_ptr<const Model>& model, EngineOptions options,
                                           std::size_t cut) {
    options.sequences = 9;
    Engine engine(model, options);
    std::vector<Sequence> all;
    std::vector<Script> scripts;
    for (int i = 0; i < 8; i++) all.push_back(engine.start()), scripts.push_back(script(i));
    std::vector<std::vector<float>> out;
    auto take = [&](std::size_t work) { out.push_back(Alone::copy(engine.logits(work))); };

    std::span<const TokenId> mine = scripts[0].prompt;
    Engine::Work first[] = {{&all[3], scripts[3].prompt}, {&all[0], mine.first(cut)}};
    engine.run(std::span(first).subspan(cut > 0 ? 0 : 1 - 1, cut > 0 ? 2 : 1), Phase::read);
    Engine::Work second[] = {{&all[0], mine.subspan(cut)}, {&all[1], scripts[1].prompt}};
    engine.run(second, Phase::read);
    take(0);
    std::vector<std::size_t> running{0, 1, 3};
    for (std::size_t t = 0; t < scripts[0].written.size(); t++) {
        std::vector<Engine::Work> work;
        for (std::size_t i : running)
            if (all[i].position() < engine.context())
                work.push_back({&all[i], std::span(scripts[i].written).subspan(t, 1)});
        engine.run(work, Phase::write);
        take(0);
        if (t % 3 == 0) {  // another reads its prompt
            std::size_t next = 2 + t / 3 + (t / 3 > 0);
            Engine::Work joins[] = {{&all[next], scripts[next].prompt}};
            engine.run(joins, Phase::read);
            running.push_back(next);
        } else if (t % 3 == 1) {  // goes on as its own copy
            Sequence copy = engine.start();
            copy.become(all[0]);
            all[0] = std::move(copy);
        } else {  // strays, and comes back
            std::int64_t here = all[0].position();
            all[0].append(std::vector<TokenId>{5, 6, 7}, Phase::read);
            CHECK(all[0].rewind(here) == here);
        }
    }
    return out;
}

}  // namespace

TEST_CASE("a sequence gives the bits it gives alone, whatever runs beside it, on every instruction set" *
          doctest::test_suite("long")) {
    std::string best = kernels().name;
    for (const KernelTable<float>* table : usable_kernels()) {
        REQUIRE(select_kernels(table->name));
        for (const char* kind : all_kinds)
            for (DType type : {DType::f32, DType::f16}) {
                Made made(kind);
                Scratch scratch;
                made.save(scratch / "m.gguf", type);
                auto model = Model::open(scratch / "m.gguf");
                auto expected = alone(model, {0, 1, 64});
                for (int threads : {1, 2, 3})
                    for (std::size_t cut : {0, 1, 2}) {
                        INFO(table->name << " " << kind << " " << threads << " threads, cut at " << cut);
                        CHECK(in_company(model, {0, threads, cut == 2 ? 5 : 64}, cut) == expected);
                    }
                for (DType state : {DType::q8_0, DType::f32}) {
                    INFO(table->name << " " << kind << " state " << info(state).name);
                    CHECK(in_company(model, {0, 2, 5, 1, state}, 2) == alone(model, {0, 1, 64, 1, state}));
                }
            }
    }
    select_kernels(best.c_str());
}

TEST_CASE(
    "a model of q8_0 weights is the same alone and in company, and near its weights in f32, on every set") {
    Made made("llama");
    Quantized q(made);
    CHECK(q.blocks.size() > 8);
    std::string best = kernels().name;
    for (const KernelTable<float>* table : usable_kernels()) {
        INFO(std::string(table->name));
        REQUIRE(select_kernels(table->name));
        auto stored = Model::view(made.config, made.tokenizer, q.stored);
        auto expected = alone(stored, {0, 1, 64});
        CHECK(alone(stored, {0, 2, 64}) == expected);
        CHECK(in_company(stored, {0, 2, 5}, 2) == expected);
        auto loaded = alone(Model::view(made.config, made.tokenizer, q.loaded), {0, 1, 64});
        CHECK(distance(expected.back(), loaded.back()) < 0.1);  // activations in bytes
        auto exact = alone(Model::view(made.config, made.tokenizer, made.parameters), {0, 1, 64});
        CHECK(distance(expected.back(), exact.back()) > 0);
        CHECK(distance(expected.back(), exact.back()) < 0.3);
    }
    select_kernels(best.c_str());
}

TEST_CASE("soft caps, biases by distance and global positions keep a sequence's bits, on every set") {
    Made made("scored");
    auto model = Model::view(made.config, made.tokenizer, made.parameters);
    std::string best = kernels().name;
    for (const KernelTable<float>* table : usable_kernels()) {
        INFO(std::string(table->name));
        REQUIRE(select_kernels(table->name));
        auto expected = alone(model, {0, 1, 64});
        CHECK(alone(model, {0, 3, 64}) == expected);
        for (std::size_t cut : {0, 2}) CHECK(in_company(model, {0, 2, 5}, cut) == expected);
        ModelConfig plain = made.config;
        plain.attention.softcap = 0;
        CHECK(alone(Model::view(plain, made.tokenizer, made.parameters), {0, 1, 64}) != expected);
    }
    select_kernels(best.c_str());
}

TEST_CASE("drafted tokens are verified with the bits of writing them one by one") {
    for (const char* kind : all_kinds) {
        Made made(kind);
        auto model = Model::view(made.config, made.tokenizer, made.parameters);
        Alone one(model, {}), drafted(model, {});
        one.read(prompt), drafted.read(prompt);
        std::vector<TokenId> draft{1, 77, 9, 200};
        Engine::Work work[] = {{&drafted.sequence, draft, true}};
        drafted.engine.run(work, Phase::write);
        std::vector<float> expected;
        for (TokenId id : draft)
            for (float x : one.write(id)) expected.push_back(x);
        CHECK(Alone::copy(drafted.engine.logits(0)) == expected);
    }
}

TEST_CASE("a model written and opened again is the same model, under the name other runtimes know") {
    for (const char* kind : {"gpt2", "llama", "linnet", "mamba", "rwkv7"}) {
        Made made(kind);
        Scratch scratch;
        made.save(scratch / "m.gguf", DType::f32);
        auto model = Model::open(scratch / "m.gguf");
        CHECK(*model->file()->string("general.architecture") == kind);
        CHECK(*model->file()->string("linnet.note") == "made by a test");
        Alone a(model, {0, 1, 32}), b(Model::view(made.config, made.tokenizer, made.parameters), {0, 1, 32});
        CHECK(a.read(prompt) == b.read(prompt));
        for (DType type : {DType::f16, DType::bf16}) {
            made.save(scratch / "h.gguf", type);
            Alone half(Model::open(scratch / "h.gguf"), {0, 1, 32});
            b.sequence.rewind(0);
            double off = distance(half.read(prompt), b.read(prompt));
            CHECK(off > 0);
            CHECK(off < (type == DType::f16 ? 0.05 : 0.4));
        }
    }
}

TEST_CASE("files that contradict themselves are refused, and the line names the place") {
    Made made("llama");
    Scratch scratch;
    std::string path = scratch / "m.gguf";
    auto write = [&](const ModelConfig& config, const TracedModel& traced,
                     const std::vector<Tensor>& parameters) {
        save_model(path, config, traced.graph, parameters, *made.tokenizer, DType::f32, "test", {});
    };
    ModelConfig other = made.config;
    other.ffn.width = 64;
    write(other, made.traced, made.parameters);
    CHECK(refusal(path).find("ffn_gate.weight: expected shape [64, 32], got [96, 32]") != std::string::npos);
    other = made.config;
    other.layers = 3;
    write(other, made.traced, made.parameters);
    CHECK(refusal(path).find("blk.2.attn_norm.weight: expected a tensor, got none") != std::string::npos);
    other.layers = 1;
    write(other, made.traced, made.parameters);
    CHECK(refusal(path).find("blk.1.") != std::string::npos);
    other = made.config;
    other.kv_heads = 3;
    GgufWriter wrong;
    wrong.add("general.architecture", "llama");
    wrong.add("llama.rope.scaling.yarn_log_multiplier", 0.5F);
    wrong.write(path);
    CHECK(refusal(path).find("llama.rope.scaling.yarn_log_multiplier: expected 0, got 0.5") !=
          std::string::npos);
    GgufWriter unknown;
    unknown.add("general.architecture", "mystery");
    unknown.write(path);
    CHECK(refusal(path).find(", linnet, got mystery") != std::string::npos);
}

TEST_CASE("values that are not finite are found where they begin, in reading and in writing") {
    Made made("llama");
    auto poisoned = [&](const std::string& name, std::size_t at) {
        for (std::size_t i = 0; i < made.values.size(); i++)
            if (made.traced.graph.parameters()[i].name == name) {
                float& weight = made.values[i].at(at);
                struct Restore {
                    float &weight, value;
                    ~Restore() { weight = value; }
                } restore{weight, weight};
                weight = std::numeric_limits<float>::quiet_NaN();
                auto model = Model::view(made.config, made.tokenizer, made.parameters);
                std::string found;
                for (bool writes : {false, true}) {
                    Alone one(model, {0, 2, 5});
                    if (writes) one.read({prompt.data(), 3});
                    std::span<const TokenId> ids = std::span(prompt).subspan(writes ? 3 : 0, writes ? 2 : 17);
                    Engine::Work work{&one.sequence, ids, writes};
                    const Phase phase = writes ? Phase::write : Phase::read;
                    one.engine.run({&work, 1}, phase);
                    auto where = one.engine.find_not_finite(work, phase);
                    REQUIRE(where.has_value());
                    CHECK(where->values > 0);
                    CHECK(one.sequence.position() == (writes ? 5 : 17));
                    found += where->node + ";";
                }
                return found;
            }
        return std::string("no such parameter");
    };
    CHECK(poisoned("blk.1.ffn_down.weight", 40) == "blk.1.ffn.down;blk.1.ffn.down;");
    CHECK(poisoned("blk.0.attn_q.weight", 0) == "blk.0.attn.q;blk.0.attn.q;");
    Alone well(Model::view(made.config, made.tokenizer, made.parameters), {0, 1, 8});
    well.read(prompt);
    Engine::Work work{&well.sequence, std::span(prompt).last(2)};
    CHECK_FALSE(well.engine.find_not_finite(work, Phase::read).has_value());
}

TEST_CASE("a sequence whose state was carried over goes on with the same bits") {
    for (const char* kind : all_kinds) {
        Made made(kind);
        auto model = Model::view(made.config, made.tokenizer, made.parameters);
        Alone from(model, {0, 1, 64}), to(model, {30, 2, 7});
        from.read(prompt);
        to.sequence.set_position(from.sequence.position());
        CHECK(from.engine.state_layout() == to.engine.state_layout());
        auto source = from.sequence.state(), target = to.sequence.state();
        REQUIRE(source.size() == target.size());
        for (std::size_t i = 0; i < source.size(); i++) {
            REQUIRE(source[i].size() == target[i].size());
            std::copy(source[i].begin(), source[i].end(), target[i].begin());
        }
        CHECK(to.write(42) == from.write(42));
        CHECK(to.read({prompt.data(), 4}) == from.read({prompt.data(), 4}));
    }
}

TEST_CASE("a fork, and a state carried over, know what their windows have forgotten") {
    Made made("linnet", 1200, 9);
    auto model = Model::view(made.config, made.tokenizer, made.parameters);
    std::vector<TokenId> ids;
    for (int i = 0; i < 1100; i++) ids.push_back((i * 31 + i / 7) % 256);
    Alone round(model, {0, 2, 64, 2}), carried(model, {0, 2, 64, 2});
    round.read(ids);
    Sequence other = round.engine.start();
    other.become(round.sequence);
    CHECK(other.rewind(500) == 0);
    carried.sequence.set_position(1100);
    CHECK(carried.sequence.rewind(500) == 0);
}

TEST_CASE("a signal ends reading within a run, and a sequence goes on from there with the same bits") {
    install_stop_signals();
    std::vector<TokenId> ids;
    for (int i = 0; i < 38; i++) ids.push_back((i * 31 + 7) % 256);
    std::ptrdiff_t within = 0;  // states that a run had begun to write when its signal came
    for (const char* kind : all_kinds)
        for (const int threads : {1, 2}) {
            INFO(kind << " " << threads);
            Made made(kind);
            Alone one(Model::view(made.config, made.tokenizer, made.parameters), {0, threads});
            const std::vector<float> expected = one.read(ids);
            auto unused = one.sequence.state();  // then: the rows behind the ninth token's
            auto go_on = [&] {
                forget_interrupt();
                const std::int64_t held = one.sequence.rewind(9);
                if (held < 9) one.read(std::span(ids).subspan(held, 9 - held));
            };
            go_on();
            for (std::size_t k = 0; k < unused.size(); k++)
                unused[k] = unused[k].subspan(one.sequence.state()[k].size());
            for (int i = 0; i < 10 || (within == 0 && i < 5000); i++) {
                for (auto rows : unused) std::ranges::fill(rows, std::byte{90});
                std::thread sender([i] {
                    std::this_thread::sleep_for(std::chrono::microseconds(i % 10 * 20));
                    std::raise(SIGINT);
                });
                try {
                    one.read(std::span(ids).subspan(9));
                } catch (const Stopped&) {
                    CHECK(one.sequence.position() <= 9);
                    for (auto r : unused) within += std::ranges::count(r, std::byte{90}) < std::ssize(r);
                }
                sender.join();
                go_on();
            }
            std::raise(SIGINT);
            CHECK_THROWS_AS(one.read(std::span(ids).subspan(9)), Stopped);
            go_on();
            CHECK(one.read(std::span(ids).subspan(9)) == expected);
        }
    CHECK(within > 0);
}

TEST_CASE("every product is among the operations of a run") {
    for (const char* kind : all_kinds) {
        CAPTURE(kind);
        const Made made(kind);
        double weights = 0;
        for (const Parameter& p : made.traced.graph.parameters())
            if (p.shape.rank == 2 && !p.name.starts_with("token_embd") && !p.name.starts_with("position") &&
                !p.name.starts_with("value"))
                weights += static_cast<double>(p.shape.count());
        if (made.config.tie_embeddings)
            weights += static_cast<double>(made.config.vocabulary * made.config.width);
        CHECK(forward_flops(made.traced, 16) >= 2 * weights);
    }
}
