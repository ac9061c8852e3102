// How models are spelled in GGUF: what is written stays the same bytes, what is read is checked.
#include <doctest/doctest.h>

#include "base/sha256.h"
#include "model/architectures.h"
#include "model/model.h"
#include "model/small_models.h"
#include "model/trace/trace.h"
#include "model/weights.h"
#include "support.h"

using namespace linnet;
using linnet::test::refusal;
using linnet::test::Scratch;

namespace {

ModelConfig config_of(const std::string& kind, TokenId vocabulary) {
    ModelConfig c;
    c.context = 24, c.width = 32, c.layers = 2, c.heads = 4, c.vocabulary = vocabulary;
    if (kind == "llama") test::make_llama(c, 64);
    if (kind == "linnet") {
        c.norm.placement = "sandwich", c.position.kind = "sinusoidal", c.attention.window = 5,
        c.ffn.activation = "relu";
    }
    resolve(c, kind);
    return c;
}

/// Writes a model of `config` whose weights are small fractions, the same on every machine; returns the
/// sha256.
std::string save(const std::string& path, const ModelConfig& config, const Tokenizer& tokenizer) {
    TracedModel traced = trace(config, false);
    std::vector<std::vector<float>> values;
    std::vector<Tensor> parameters;
    for (const Parameter& p : traced.graph.parameters()) {
        values.emplace_back(static_cast<std::size_t>(p.shape.count()));
        for (std::size_t i = 0; i < values.back().size(); i++)
            values.back()[i] = static_cast<float>((i * 37 + values.size() * 11) % 101) / 64 - 0.75f;
        parameters.push_back({values.back().data(), DType::f32, p.shape});
    }
    return save_model(path, config, traced.graph, parameters, tokenizer, DType::f32, "test",
                      {{"note", "fixed"}});
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

namespace {

/// A small config that `a` can say, with every field that a key of it holds set to something of its own.
ModelConfig sample(const Architecture& a, bool present, TokenId vocabulary) {
    const nlohmann::json values = {{"model.context", 24},
                                   {"model.width", 32},
                                   {"model.layers", 7},
                                   {"model.heads", 4},
                                   {"model.kv_heads", 2},
                                   {"model.head_width", 16},
                                   {"model.ffn.width", 48},
                                   {"model.norm.epsilon", 0.25},
                                   {"model.position.theta", 500.0},
                                   {"model.position.rotary_width", 12},
                                   {"model.position.scaling.kind", "yarn"},
                                   {"model.position.scaling.factor", 4.0},
                                   {"model.position.scaling.original", 8},
                                   {"model.position.scaling.attention", 1.5},
                                   {"model.position.scaling.beta_fast", 16.0},
                                   {"model.attention.scale", 0.25},
                                   {"model.attention.clamp", 3.0},
                                   {"model.attention.softcap", 20.0},
                                   {"model.attention.alibi", 16.0},
                                   {"model.embedding.scale", 12.0},
                                   {"model.residual.scale", 0.5},
                                   {"model.logits.scale", 0.125},
                                   {"model.residual.kind", "parallel"},
                                   {"model.position.kind", "rope"},
                                   {"model.attention.window", 7},
                                   {"model.experts.count", 4},
                                   {"model.experts.used", 2},
                                   {"model.experts.width", 24},
                                   {"model.experts.leading_dense", 2},
                                   {"model.experts.scale", 1.5},
                                   {"model.experts.shared", 48}};
    // What only some kinds of models may have.
    const nlohmann::json of_kinds = {{"model.segments", 2},
                                     {"model.pooling", "first"},
                                     {"model.attention.buckets", 8},
                                     {"model.decoder_layers", 5},
                                     {"model.start_token", 3}};
    bool mixture = false;  // always
    for (const ArchitectureKey& key : a.keys) mixture |= key.field == "model.experts.count" && key.required;
    ModelConfig config;
    std::vector<Field> fields = model_fields(config);
    for (const ArchitectureKey& key : a.keys)
        if (of_kinds.contains(key.field)) set_field(fields, key.field, of_kinds[key.field], a.name);
    for (const ArchitectureKey& key : a.keys) {
        if (!values.contains(key.field) || (key.field.starts_with("model.experts.") && !mixture)) continue;
        nlohmann::json value = values[key.field];
        if (!key.layers.empty()) {  // other layers have the default
            nlohmann::json other = key.field == "model.attention.window" ? 0 : 1;
            value = nlohmann::json::array();
            for (bool here : key.layers) value.push_back(here ? values[key.field] : other);
        }
        set_field(fields, key.field, value, a.name);
    }
    if (a.keys.empty())
        for (const auto& [field, value] : values.items())
            if (!field.starts_with("model.experts.")) set_field(fields, field, value, a.name);
    nlohmann::json all = nlohmann::json::object();
    for (const Field& field : fields) all[field.key] = value_of(field);
    if (mixture) config.ffn.bias = false;
    for (const auto& [field, value] : a.constants.items())
        if (nlohmann::json one = derived(value, all); !one.is_null()) set_field(fields, field, one, a.name);
    for (const TensorPresence& p : a.presence)  // the last that is there would hold factors twice
        if (p.written && !(present && p.tensor.starts_with("rope_factors")) &&
            !(mixture && p.field == "model.ffn.bias"))
            set_field(fields, p.field, present && !p.present.is_null() ? p.present : p.absent, a.name);
    config.vocabulary = vocabulary;
    resolve(config, a.name);
    return config;
}

std::string text_of(ModelConfig config) {
    std::string text;
    for (const Field& field : model_fields(config)) text += field.key + "=" + value_of(field).dump() + "\n";
    return text;
}

/// What the schema says of a file; "accepted" where nothing.
std::string parsed(const std::string& text) {
    return refusal([&] { parse_architecture(text, "models/architectures/new.json"); });
}

/// A file with one key, one tensor, one presence row put into it.
std::string file_with(const std::string& key, const std::string& tensor = "",
                      const std::string& presence = "") {
    return R"({"name": "new", "gguf": {"keys": [)" + key + R"(], "tensors": [)" + tensor +
           R"(], "presence": [)" + presence + "]}}";
}

}  // namespace

TEST_CASE("every architecture says its configs: written, opened, the same config and the same tensors") {
    Scratch scratch;
    auto tokenizer = train_tokenizer("byte", "text", 256, 1);
    CHECK(architectures().size() >= 20);
    CHECK(!architectures().back()->config_key.empty());  // the last can say any
    auto check = [&](const Architecture& a, bool present) {
        CAPTURE(a.name);
        CAPTURE(present);
        ModelConfig config = sample(a, present, tokenizer->size());
        const Architecture& written = architecture_of(config);
        CHECK(written.order <= a.order);  // another may say the same, and is then preferred
        save(scratch / "m.gguf", config, *tokenizer);
        auto model = Model::open(scratch / "m.gguf");
        CHECK(*model->file()->string("general.architecture") == written.name);
        CHECK(text_of(model->config()) == text_of(config));
        for (const GgufTensor& t : model->file()->tensors()) CHECK(!is_ignored(a, t.name));
    };
    for (const Architecture* a : architectures())
        for (bool present : {false, true}) {
            if (!a->marks()) check(*a, present);
            if (!a->marks()) continue;
            const std::vector<bool> usual = a->marks()->missing;
            for (const auto& marks :
                 {usual, {true, false, true, true, false, false, true}, {true, true, false}})
                check(with_marks(*a, marks), present);
        }
}

TEST_CASE("an architecture is found by its name, without the others; what is not whole, or no name, is not") {
    for (const Architecture* a : architectures()) CHECK_MESSAGE(architecture_named(a->name) == a, a->name);
    for (const char* name : {"", "common", "architectures/llama", "lama"}) CHECK(!architecture_named(name));
}

TEST_CASE("a data file that says something wrong is refused, and the line names file and key") {
    CHECK(parsed(file_with(R"({"key": "w", "field": "model.width"})")) == "accepted");
    CHECK(parsed("{") ==
          "models/architectures/new.json: line 1, column 2: expected JSON, got the end of the file");
    CHECK(contains(parsed(R"({"name": "other", "gguf": {}})"),
                   "new.json: name: expected the file's name, got other"));
    CHECK(contains(parsed(R"({"nam": "new"})"), "new.json: nam: expected a known key"));
    CHECK(contains(parsed(R"({"name": "new"})"), "gguf: expected an object, got nothing"));
    CHECK(contains(parsed(R"({"name": "new", "order": "x", "gguf": {}})"), "order: expected a whole number"));
    CHECK(contains(parsed(R"({"name": "new", "constants": {"model.widht": 1}, "gguf": {}})"), "model.widht"));
    CHECK(contains(parsed(R"({"name": "new", "constants": {"model.width": "x"}, "gguf": {}})"),
                   "new.json: constants: model.width: expected a whole number"));
    CHECK(contains(parsed(R"({"name": "new", "gguf": {}})"),
                   "gguf: expected either keys or config, got neither"));
    auto key = [](const char* row) { return parsed(file_with(row)); };
    CHECK(contains(key(R"({"field": "model.width"})"), "gguf.keys[0].key: expected a string, got nothing"));
    CHECK(contains(key(R"({"key": "w", "feild": "model.width"})"), "keys[0].feild"));
    CHECK(contains(key(R"({"key": "w", "field": "model.widht"})"), "did you mean model.width?"));
    CHECK(contains(key(R"({"key": "w", "field": "model.width", "required": 1})"),
                   "gguf.keys[0].required: expected true or false, got 1"));
    CHECK(contains(key(R"({"key": "w", "field": "model.width", "missing": 0})"),
                   "keys[0].missing: model.width: expected 1 to"));
    CHECK(contains(key(R"({"key": "w", "field": "model.width", "equals": 3})"),
                   "one of field, equals, ignore and marks"));
    CHECK(contains(key(R"({"key": "w"})"), "expected one of field, equals, ignore and marks, got 0 of them"));
    CHECK(contains(key(R"({"key": "w", "field": "model.width", "unit": "model.widht"})"), "keys[0].unit"));
    CHECK(contains(key(R"({"key": "w", "field": "model.attention.window", "layers": "some"})"),
                   "keys[0].layers: expected a field, and marked, unmarked or true for a layer"));
    CHECK(contains(key(R"({"key": "w", "field": "model.attention.window", "layers": "marked"})"),
                   "gguf.keys: expected a row that marks layers and rows for them, got others"));
    CHECK(contains(key(R"({"key": "w", "marks": "model.attention.window", "missing": [true, 1]})"),
                   "keys[0].missing: expected a list of true and false, got [true,1]"));
    CHECK(contains(key(R"({"key": "w", "marks": "model.attention.windw", "missing": [true]})"),
                   "keys[0].marks"));
    CHECK(contains(key(R"({"key": "w", "field": "model.width", "unit": "model.heads", "missing": 3})"),
                   "expected unit without missing"));
    CHECK(contains(
        parsed(R"({"name": "new", "constants": {"model.width": {"from": "model.heads", "over": "model.hads",
                  "times": 1, "power": 1}}, "gguf": {}})"),
        "over"));
    CHECK(contains(parsed(R"({"name": "new", "constants": {"model.width": {"from": "model.heads", "only": 3,
                  "times": 1, "power": 1}}, "gguf": {}})"),
                   "only: expected an object, got 3"));
    CHECK(contains(key(R"({"key": "w", "field": "model.norm.kind", "values": {"a": "b"}})"),
                   "keys[0].values.a: model.norm.kind: expected one of layer, rms, got b"));
    CHECK(contains(key(R"({"key": "w", "ignore": "why", "required": true})"), "ignore or required"));
    CHECK(contains(parsed(file_with(R"({"key": "w", "equals": 1}, {"key": "w", "equals": 2})")),
                   "keys[1].key: expected each key once, got w"));
    auto tensor = [](const char* row) { return parsed(file_with(R"({"key": "w", "equals": 1})", row)); };
    CHECK(tensor(R"({"tensor": "rope_freqs", "ignore": "why"})") == "accepted");
    CHECK(contains(tensor(R"({"tensor": "a"})"), "tensors[0]: expected either holds or ignore, got neither"));
    CHECK(contains(tensor(R"({"tensor": "a.{layer}", "holds": ["b"]})"),
                   "{layer} in both names or in neither"));
    CHECK(contains(tensor(R"({"tensor": "a", "holds": ["b", "b"]})"),
                   "holds[1]: expected each parameter once"));
    CHECK(contains(tensor(R"({"tensor": "a", "holds": []})"), "holds: expected parameters' names"));
    CHECK(contains(parsed(file_with(R"({"key": "w", "equals": 1})", "",
                                    R"({"tensor": "a", "field": "model.width", "present": 1})")),
                   "presence[0].absent: model.width: expected a whole number, got null"));
}

TEST_CASE("a file's keys become settings by the rows: defaults, values that select, values that must be") {
    Architecture a = parse_architecture(
        R"({"name": "new", "constants": {"model.position.kind": ["rope", "rope", "rope", "none"]},
            "gguf": {"keys": [
            {"key": "width", "field": "model.width", "required": true},
            {"key": "layers", "field": "model.layers", "required": true},
            {"key": "heads", "field": "model.heads", "required": true, "per_layer": true},
            {"key": "theta", "field": "model.position.theta", "missing": 777},
            {"key": "post", "field": "model.norm.placement", "values": {"true": "post", "false": "pre"}},
            {"key": "causal", "equals": true, "required": true},
            {"key": "gone", "ignore": "means nothing"},
            {"key": "head", "field": "model.head_width", "missing": 8}],
            "tensors": [{"tensor": "wte", "holds": ["token_embd"]}, {"tensor": "b.{layer}.kv", "holds":
            ["blk.{layer}.attn_k", "blk.{layer}.attn_v"]}, {"tensor": "b.{layer}.old", "ignore": "why"}],
            "presence": [{"tensor": "b.{layer}.up.bias", "field": "model.ffn.bias", "present": true,
            "absent": false}]}})",
        "architectures/new.json");
    Scratch scratch;
    struct Keys {
        bool post = true, causal = true, odd_bias = false;
        std::vector<std::int32_t> heads{4, 2};
        std::string extra = "";
    };
    auto read = [&](const Keys& keys) {
        GgufWriter out;
        out.add("new.width", 32u), out.add("new.layers", 2u);
        out.add("new.heads", std::span<const std::int32_t>(keys.heads));
        out.add("new.post", keys.post), out.add("new.causal", keys.causal), out.add("new.gone", "x");
        if (!keys.extra.empty()) out.add(keys.extra, "x");
        auto zeros = [](const GgufWriter::Sink& sink) { sink(std::vector<float>(4).data(), 16); };
        out.add_tensor("token_embd.weight", DType::f32, Shape(2, 2), zeros);
        out.add_tensor("b.1.up.bias", DType::f32, Shape(4), zeros);
        if (!keys.odd_bias) out.add_tensor("b.0.up.bias", DType::f32, Shape(4), zeros);
        out.write(scratch / "m.gguf");
        return read_config(Gguf(scratch / "m.gguf"), a);
    };
    ModelConfig config = read({});
    CHECK(config.heads.list() == std::vector<std::int64_t>{4, 2});
    CHECK(config.kv_heads.list() == std::vector<std::int64_t>{4, 2});
    CHECK(config.position.kind.list() == std::vector<std::string>{"rope"});  // of four, two layers have two
    CHECK(config.position.theta == 777);
    CHECK(config.head_width == 8);
    CHECK(config.norm.placement == "post");
    CHECK(config.ffn.bias);
    CHECK(read({.post = false}).norm.placement == "pre");
    CHECK(read({.heads = {4, 4}}).heads.is_list() == false);
    auto wrong = [&](const Keys& keys) { return refusal([&] { read(keys); }); };
    CHECK(contains(wrong({.causal = false}),
                   "new.causal: expected true, got false (others are not supported)"));
    CHECK(read({.odd_bias = true}).ffn.bias);  // that of layer 0 counts as 0
    CHECK(contains(wrong({.heads = {4, 2, 4}}), "new.heads: expected 2 values, one per layer, got 3"));
    CHECK(contains(wrong({.heads = {4}}), "new.heads: expected 2 values, one per layer, got 1"));
    CHECK(contains(wrong({.heads = {}}), "new.heads: model.heads: expected a whole number, or a list"));
    CHECK(contains(wrong({.heads = {4, 5000}}), "model.heads[1]: expected 1 to 4096, got 5000"));
    CHECK(contains(wrong({.extra = "new.head"}), "new.head: model.head_width: expected a whole number"));
    CHECK(contains(wrong({.extra = "new.other"}), "new.other: expected metadata that this program"));
    CHECK(place_of(a, "token_embd.weight").tensor == "wte.weight");
    CHECK(place_of(a, "blk.12.attn_v.bias").tensor == "b.12.kv.bias");
    CHECK(place_of(a, "blk.12.attn_v.bias").part == 1);
    CHECK(place_of(a, "blk.12.attn_q.weight").tensor == "blk.12.attn_q.weight");
    CHECK(is_ignored(a, "b.3.old.weight"));
    CHECK(!is_ignored(a, "b.old.weight"));
}

TEST_CASE("settings that differ by layer are kept by files of either kind, and checked") {
    Scratch scratch;
    auto tokenizer = train_tokenizer("byte", "text", 256, 1);
    using List = std::vector<std::int64_t>;
    for (bool own : {true, false}) {
        ModelConfig c = config_of("llama", tokenizer->size());
        c.layers = 3, c.norm.epsilon = 0.25, c.heads = PerLayer<std::int64_t>(List{4, 2}), c.head_width = 8;
        c.kv_heads = PerLayer<std::int64_t>(List{2, 1, 4}),
        c.ffn.width = PerLayer<std::int64_t>(List{48, 32});
        if (own) {  // no standard architecture says these
            c.attention.window = PerLayer<std::int64_t>(List{4, 0, 0});
            c.position.kind = PerLayer<std::string>(std::vector<std::string>{"rope", "none", "rope"});
        }
        resolve(c, "test");
        save(scratch / "m.gguf", c, *tokenizer);
        auto model = Model::open(scratch / "m.gguf");
        const Gguf& file = *model->file();
        CHECK((*file.string("general.architecture") == "linnet") == own);
        CHECK(text_of(model->config()) == text_of(c));
        CHECK(model->config().kv_heads.list() == List{2, 1, 4});
        if (own) continue;
        std::string prefix(*file.string("general.architecture"));
        CHECK(*file.integers(prefix + ".attention.head_count") == List{4, 2, 4});  // one for every layer
        CHECK(*file.integers(prefix + ".feed_forward_length") == List{48, 32, 48});
        CHECK(*file.integer(prefix + ".embedding_length") == 32);
    }
    ModelConfig c = config_of("llama", 8);
    c.attention.window = PerLayer<std::int64_t>(std::vector<std::int64_t>{1, 2, 3});
    CHECK(contains(refusal([&] { resolve(c, "f"); }),
                   "f: model.attention.window: expected at most 2 values, one per layer, got 3"));
    c = config_of("llama", 8), c.head_width = 0;
    c.heads = PerLayer<std::int64_t>(std::vector<std::int64_t>{4, 2});
    CHECK(
        contains(refusal([&] { resolve(c, "f"); }), "model.head_width: expected a number, as heads differ"));
    c = config_of("llama", 8);
    c.position.kind = PerLayer<std::string>(std::vector<std::string>{"rope", "learned"});
    CHECK(contains(refusal([&] { resolve(c, "f"); }), "expected rope or none in a list, got learned"));
}

TEST_CASE("model files are written byte for byte as they always were") {
    Scratch scratch;
    auto tokenizer = train_tokenizer("byte", "text", 256, 1);
    struct {
        const char* kind;
        const char* sha256;
    } files[] = {
        {"gpt2", "ef493a80346c8fdcdb5e24f015dc60b6e9023115095e0926dcdf23f2ed018ee4"},
        {"llama", "677621b70b31e6df9964d1fff121db505536e127263e8a0d1c0abf673fdaed25"},
        {"linnet", "64d8a9d9feaeb2b5ee3e03e546559f4280f000558153c4e6f78956eff71c68d0"},
    };
    for (const auto& file : files) {
        CAPTURE(file.kind);
        CHECK(save(scratch / "m.gguf", config_of(file.kind, tokenizer->size()), *tokenizer) == file.sha256);
        CHECK(*Model::open(scratch / "m.gguf")->file()->string("general.architecture") == file.kind);
    }
}

TEST_CASE("a vector of blocks is refused by the types that vectors have") {
    Scratch scratch;
    ModelConfig config = config_of("llama", 8);
    config.layers = 1, config.width = 256, config.head_width = 64, config.ffn.width = 256;
    const TracedModel traced = trace(config, false);
    GgufWriter out;
    for (const Parameter& p : traced.graph.parameters()) {
        const DTypeInfo& type = info(p.name == "output_norm.weight" ? DType::q8_0 : DType::f32);
        std::vector<char> zeros(static_cast<std::size_t>(p.shape.count() / type.block * type.bytes));
        out.add_tensor(p.name, type.type, p.shape,
                       [zeros](const GgufWriter::Sink& sink) { sink(zeros.data(), zeros.size()); });
    }
    out.write(scratch / "m.gguf");
    const Gguf file(scratch / "m.gguf");
    std::vector<std::vector<float>> converted;
    CHECK(refusal([&] { bind_parameters(traced.graph, file, architecture_of(config), converted); }) ==
          scratch / "m.gguf" + ": output_norm.weight: expected f32, f16 or bf16, got q8_0");
}

TEST_CASE("a model whose matrices have a type without kernels is refused by the type's name") {
    Scratch scratch;
    ModelConfig config = config_of("llama", 8);
    config.layers = 1, config.width = 256, config.head_width = 64, config.ffn.width = 256;
    TracedModel traced = trace(config, false);
    const Architecture& llama = architecture_of(config);
    std::string name = "blk.0.ffn_up.weight";
    for (const DTypeInfo& row : dtypes()) {
        if (row.is_weight || row.gguf_id < 0) continue;
        CAPTURE(row.name);
        GgufWriter out;
        for (const Parameter& p : traced.graph.parameters()) {
            const DTypeInfo& type = p.name == name ? row : info(DType::f32);
            std::vector<char> zeros(static_cast<std::size_t>(p.shape.count() / type.block * type.bytes));
            out.add_tensor(p.name, type.type, p.shape,
                           [zeros](const GgufWriter::Sink& sink) { sink(zeros.data(), zeros.size()); });
        }
        out.write(scratch / "m.gguf");
        Gguf file(scratch / "m.gguf");
        std::vector<std::vector<float>> converted;
        std::string line = refusal([&] { bind_parameters(traced.graph, file, llama, converted); });
        CHECK(contains(line, name + ": expected a type that this program computes with (f32, f16, bf16"));
        CHECK(line.ends_with(", got " + std::string(row.name)));
    }
}
