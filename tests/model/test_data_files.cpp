// Data files of architectures and families, and config.json: each row is something wrong, and the line that
// is said of it.
#include <doctest/doctest.h>

#include <array>

#include "base/error.h"
#include "model/huggingface/config.h"
#include "support.h"

using namespace linnet;
using namespace std::string_literals;
using nlohmann::json;
using test::refusal;

namespace {

const std::string path = "models/architectures/new.json";

struct Row {
    std::string text, says;
};

/// Other data files that one may be like.
constexpr std::array<EmbeddedFile, 3> bases = {{
    {"models/architectures/base.json", R"({"name": "base", "constants": {"model.norm.kind": "rms"},
      "gguf": {"keys": [{"key": "w", "field": "model.width"}, {"key": "x", "equals": 1}],
               "tensors": [{"tensor": "t", "ignore": "z"}],
               "presence": [{"tensor": "p", "field": "model.ffn.bias", "present": true, "absent": false}]},
      "huggingface": {"model_type": "y", "class": "Y", "prefix": "p.",
        "constants": {"model.norm.kind": "rms"}, "aliases": [["n", "m"]],
        "keys": [{"key": "k", "equals": 1}],
        "tensors": [{"tensor": "t", "ignore": "z"}, {"tensor": "u", "holds": ["q"]}],
        "presence": [{"tensor": "b.weight", "field": "model.attention.bias", "present": true,
                      "absent": false}]}})"},
    {"models/architectures/plain.json", R"({"name": "plain", "gguf": {"config": "c"}})"},
    {"models/architectures/round.json", R"({"like": "round", "huggingface": {"like": "round"}})"},
}};

Architecture architecture(const std::string& text) {
    return parse_architecture(text, path, bases);
}

HuggingFaceFamily family(json section) {
    Architecture a;
    a.name = "llama", a.constants = json::object();
    if (!section.contains("model_type")) section["model_type"] = "x", section["class"] = "X";
    a.huggingface = std::move(section);
    return parse_huggingface(a, path, bases);
}

void check_rows(std::span<const Row> rows, const std::function<void(const std::string&)>& read) {
    for (const Row& row : rows) {
        const std::string line = refusal([&] { read(row.text); });
        CHECK_MESSAGE(line == (row.says == "accepted" ? "" : path + ": ") + row.says, row.text);
    }
}

}  // namespace

TEST_CASE("a row of an architecture's keys that contradicts itself is refused by its place") {
    const std::string row = "gguf.keys[0]: ", layers =
                                                  "gguf.keys[0].layers: expected a field, and marked, "
                                                  "unmarked or true for a layer, got ";
    const std::string lone =
        row + "expected a field beside missing, values, per_layer, inverse, zero_means and unit, got none";
    const std::string unit = row + "expected unit without missing, values, per_layer and layers, got another";
    const std::string zero =
        "gguf.keys[0].zero_where: expected a field and its value, beside per_layer, got ";
    const std::string field = R"({"key": "a", "field": "model.kv_heads", )",
                      fixed = R"({"key": "a", "equals": 1, )";
    const Row rows[] = {
        {"7", "gguf.keys[0]: expected an object, got number"},
        {R"({"key": ""})", "gguf.keys[0].key: expected a string, got \"\""},
        {field + R"("layers": [false]})", layers + "[false]"},
        {field + R"("layers": [true], "per_layer": true})", layers + "[true]"},
        {fixed + R"("layers": [true]})", layers + "[true]"},
        {field + R"("layers": [true, false]})", "accepted"},
        {field + R"("layers": []})", "gguf.keys[0].layers: expected a list of true and false, got []"},
        {field + R"("layers": 7})", "gguf.keys[0].layers: expected a list of true and false, got 7"},
        {fixed + R"("missing": 1})", lone},
        {fixed + R"("values": {"a": 1}})", lone},
        {fixed + R"("unit": "model.heads"})", lone},
        {fixed + R"("per_layer": true})", lone},
        {fixed + R"("inverse": true})", lone},
        {fixed + R"("zero_means": "model.heads"})", lone},
        {field + R"("unit": "model.heads"})", "accepted"},
        {field + R"("unit": "model.heads", "missing": 1})", unit},
        {field + R"("unit": "model.heads", "values": {"a": 1}})", unit},
        {field + R"("unit": "model.heads", "per_layer": true})", unit},
        {field + R"("unit": "model.heads", "layers": [true]})", unit},
        {field + R"("per_layer": true, "zero_where": 7})", zero + "7"},
        {field + R"("per_layer": true, "zero_where": {}})", zero + "{}"},
        {field + R"("zero_where": {"model.heads": 2}})", zero + R"({"model.heads":2})"},
        {field + R"("per_layer": true, "zero_where": {"model.heads": 2}})", "accepted"},
        {field + R"("required": true, "missing": 1})", row + "expected missing or required, got both"},
        {field + R"("per_layer": true, "values": {"a": 1}})", row + "expected values or per_layer, got both"},
        {field + R"("values": 7})", "gguf.keys[0].values: expected an object of what the key may say, got 7"},
        {field + R"("values": {}})",
         "gguf.keys[0].values: expected an object of what the key may say, got {}"},
        {R"({"key": "a", "marks": "model.attention.window", "missing": [true]})",
         "gguf.keys: expected a row that marks layers and rows for them, got one"},
    };
    check_rows(rows, [](const std::string& text) {
        architecture(R"({"name": "new", "gguf": {"keys": [)" + text + "]}}");
    });
}

TEST_CASE("an architecture's file whose other parts contradict themselves is refused by their place") {
    const std::string key = R"("keys": [{"key": "a", "equals": 1}])";
    auto with = [&](const std::string& more) { return R"({"name": "new", "gguf": {)" + key + more + "}}"; };
    auto derived = [](const std::string& more) {
        return R"({"name": "new", "gguf": {"config": "c"}, "constants": {"model.ffn.width": {"from": )"
               R"("model.width", )" +
               more + "}}}";
    };
    const Row rows[] = {
        {with(R"(, "config": "c")"), "gguf: expected either keys or config, got both"},
        {with(R"(, "tensors": 7)"), "gguf.tensors: expected an array, got number"},
        {with(R"(, "tensors": [{"tensor": "a", "holds": ["b"], "ignore": "c"}])"),
         "gguf.tensors[0]: expected either holds or ignore, got both"},
        {with(R"(, "tensors": [{"tensor": "a", "holds": [7]}])"),
         "gguf.tensors[0].holds[0]: expected a parameter's name, got 7"},
        {with(R"(, "tensors": [{"tensor": "a", "ignore": "c"}, {"tensor": "a", "ignore": "c"}])"),
         "gguf.tensors[1].tensor: expected each tensor once, got a"},
        {R"({"name": "new", "constants": [], "gguf": {}})", "constants: expected an object, got array"},
        {derived(R"("times": "x", "power": 1)"), "constants.times: expected a number, got \"x\""},
        {derived(R"("times": 1, "power": null)"), "constants.power: expected a number, got null"},
        {derived(R"("times": 1, "power": 1, "multiple": "x")"),
         "constants.multiple: expected a number above 0, got \"x\""},
        {derived(R"("times": 1, "power": 1, "multiple": 8)"), "accepted"},
        {R"({"like": 7})", "like: expected a string, got 7"},
        {R"({"like": "nothing"})", "like: expected the name of another file, got nothing"},
        {R"({"name": "new", "like": "base"})", "accepted"},
        {R"({"name": "new", "like": "base", "gguf": 7})", "gguf: expected an object, got number"},
        {R"({"name": "new", "like": "base", "gguf": {"keys": 7}})",
         "gguf.keys: expected an array, got number"},
        {R"({"name": "new", "like": "base", "gguf": {"keys": [7]}})",
         "gguf.keys[2]: expected an object, got number"},
        {R"({"name": "new", "like": "base", "gguf": {"tensors": [{}]}})",
         "gguf.tensors[1].tensor: expected a string, got nothing"},
        {R"({"name": "new", "like": "base", "constants": 7})", "constants: expected an object, got number"},
        {R"({"name": "new", "like": "plain", "constants": {"model.norm.kind": "x"}})",
         "constants: model.norm.kind: expected one of layer, rms, got x"},
        {R"({"name": "new", "like": "plain", "gguf": {"tensors": 7}})",
         "gguf.tensors: expected an array, got number"},
        {R"({"name": "new", "partial": true})", "accepted"},
    };
    check_rows(rows, [](const std::string& text) { architecture(text); });
    CHECK(refusal([] { architecture("[]"); }) == path + ": expected an object, got array");
    CHECK(refusal([] { architecture(R"({"like": "round"})"); }) ==
          "models/architectures/round.json: like: expected the name of another file, got round");
    const Architecture both = architecture(
        R"({"name": "new", "like": "base", "constants": {"model.layers": 3},
            "gguf": {"keys": [{"key": "x", "equals": 2}], "presence": [
              {"tensor": "p", "field": "model.ffn.bias", "present": false, "absent": true}]}})");
    CHECK(both.constants == json{{"model.norm.kind", "rms"}, {"model.layers", 3}});
    REQUIRE(both.keys.size() == 2);
    CHECK(both.keys[1].equals == 2);
    CHECK(both.presence.size() == 1);
    CHECK(both.presence[0].present == false);
    CHECK(both.huggingface.is_null());  // it is the other's own
}

TEST_CASE("a row of a family's section that contradicts itself is refused by its place") {
    const std::string key = "huggingface.keys[0]", tensor = "huggingface.tensors[0]";
    const std::string reckoned =
        key + ": expected a field beside times and power, without per_layer and inverse, got ";
    auto keys = [](const std::string& row) { return R"({"keys": [)" + row + "]}"; };
    auto tensors = [](const std::string& row) { return R"({"tensors": [)" + row + "]}"; };
    auto pairs = [](const std::string& row) { return R"({"aliases": [)" + row + "]}"; };
    const std::string field = R"({"key": "a", "field": "model.ffn.width", )",
                      fixed = R"({"key": "a", "equals": 1, )";
    const std::string marks = R"({"key": "a", "offset": "b", "field": "model.experts.count", )";
    const Row rows[] = {
        {R"({"keys": 7})", "huggingface.keys: expected an array, got number"},
        {keys("7"), key + ": expected an object, got number"},
        {keys(R"({"key": "a"})"), key + ": expected one of field, equals and ignore, got 0 of them"},
        {keys(field + R"("equals": 1})"), key + ": expected one of field, equals and ignore, got 2 of them"},
        {keys(fixed + R"("when": 7})"), key + ".when: expected an object, got number"},
        {keys(fixed + R"("when": {"b": "c"}})"), key + ".when: expected lists of texts, got \"c\""},
        {keys(fixed + R"("when": {"b": [1]}})"), key + ".when: expected lists of texts, got [1]"},
        {keys(fixed + R"("power": 2})"), reckoned + "no field"},
        {keys(field + R"("power": 2, "per_layer": true})"), reckoned + "another row"},
        {keys(field + R"("times": 2, "inverse": true})"), reckoned + "another row"},
        {keys(field + R"("times": 2, "power": 0.5})"), "accepted"},
        {keys(field + R"("power": "x"})"), key + ".power: expected a number other than 0, got \"x\""},
        {keys(field + R"("zero_means": 3})"), key + ".zero_means: expected a string, got 3"},
        {keys(field + R"("silent": 7})"), key + ".silent: expected an object, got 7"},
        {keys(field + R"("silent": {"model.norm.kind": "x"}})"),
         key + ".silent: model.norm.kind: expected one of layer, rms, got x"},
        {keys(field + R"("write": "x"})"), key + ": expected ignore or values beside write, got neither"},
        {keys(field + R"("values": 7})"), key + ".values: expected an object of what the key may say, got 7"},
        {keys(field + R"("values": {}})"),
         key + ".values: expected an object of what the key may say, got {}"},
        {keys(field + R"("values": {"a": 4}, "write": "a", "written": false})"), "accepted"},
        {keys(marks + R"("unmarked": 0, "missing": 7})"),
         key + ".missing: expected a period and an offset, got 7"},
        {keys(marks + R"("unmarked": 0, "missing": [2]})"),
         key + ".missing: expected a period and an offset, got [2]"},
        {keys(marks + R"("unmarked": 0, "missing": ["a", 1]})"),
         key + ".missing: expected a period and an offset, got [\"a\",1]"},
        {keys(marks + R"("unmarked": 0, "missing": [2, "b"]})"),
         key + ".missing: expected a period and an offset, got [2,\"b\"]"},
        {tensors(R"({"tensor": "a"})"), tensor + ": expected either holds or ignore, got neither"},
        {tensors(R"({"tensor": "a", "holds": ["b"], "ignore": "c"})"),
         tensor + ": expected either holds or ignore, got both"},
        {tensors(R"({"tensor": "a", "holds": ["b"], "less_one": true, "log": true})"),
         tensor + ": expected less_one or log, got both"},
        {tensors(R"({"tensor": "a", "holds": ["b"], "parts": "model.experts.count"})"),
         tensor + ": expected {part} in the name where there are parts, got a"},
        {tensors(R"({"tensor": "a.{part}", "holds": ["b"]})"),
         tensor + ": expected {part} in the name where there are parts, got a.{part}"},
        {tensors(R"({"tensor": "a.{part}", "holds": ["b", "c"], "parts": "model.experts.count"})"),
         tensor + ": expected one parameter beside parts, got several"},
        {tensors(R"({"tensor": "a", "holds": [7]})"),
         tensor + ".holds[0]: expected a parameter's name, got 7"},
        {tensors(R"({"tensor": "a", "holds": []})"),
         tensor + ".holds: expected parameters' names, got an empty list"},
        {R"({"made": [{"by": "list", "from": "a"}]})",
         "huggingface.made[0]: expected either parameter or field, got neither"},
        {R"({"made": [{"by": "list", "from": "a", "parameter": "b", "field": "model.width"}]})",
         "huggingface.made[0]: expected either parameter or field, got both"},
        {R"({"model_type": "x"})", "huggingface: expected model_type and class, got one of them"},
        {R"({"gguf": "nothing"})", "huggingface.gguf: expected an architecture, got nothing"},
        {R"({"also": [7]})", "huggingface.also[0]: expected an architecture, got 7"},
        {R"({"constants": {"model.norm.kind": {"marked": "rms", "unmarked": "layer"}}})",
         "huggingface.constants.model.norm.kind: expected one value or a list, as no key marks layers, got "
         R"({"marked":"rms","unmarked":"layer"})"},
        {pairs("7"), "huggingface.aliases[0]: expected two texts, got 7"},
        {pairs(R"(["a"])"), "huggingface.aliases[0]: expected two texts, got [\"a\"]"},
        {pairs(R"([1, "a"])"), "huggingface.aliases[0]: expected two texts, got [1,\"a\"]"},
        {pairs(R"(["a", 1])"), "huggingface.aliases[0]: expected two texts, got [\"a\",1]"},
        {R"({"like": 7})", "huggingface.like: expected the name of another file, got 7"},
        {R"({"like": "nothing"})", "huggingface.like: expected the name of another file, got \"nothing\""},
        {R"({"like": ["base", "plain"]})",
         "huggingface.like: expected a file with such a section, got models/architectures/plain.json"},
        {R"({"like": "base", "keys": [7]})", "huggingface.keys[1]: expected an object, got number"},
        {R"({"like": "base", "aliases": {"q": "r"}})", "huggingface.aliases: expected an array, got object"},
        {R"({"like": "base", "tensors": [{"tensor": "a"}]})",
         "huggingface.tensors[2]: expected either holds or ignore, got neither"},
    };
    check_rows(rows, [](const std::string& text) { family(json::parse(text)); });
    CHECK(refusal([] {
              family({{"like", "round"}});
          }) ==
          "models/architectures/round.json: huggingface.like: expected the name of another file, got "
          "\"round\"");
    const HuggingFaceFamily both = family(
        {{"like", "base"},
         {"prefix", "s."},
         {"constants", {{"model.layers", 3}}},
         {"aliases", json::array({json::array({"q", "r"})})},
         {"keys", {{{"key", "k"}, {"equals", 2}}}},
         {"tensors", {{{"tensor", "v"}, {"holds", {"q"}}}}},
         {"presence",
          {{{"tensor", "b.weight"}, {"field", "model.ffn.bias"}, {"present", true}, {"absent", false}}}}});
    CHECK(both.prefix == "s.");
    CHECK(both.constants == json{{"model.norm.kind", "rms"}, {"model.layers", 3}});
    CHECK(both.aliases.size() == 2);
    REQUIRE(both.keys.size() == 1);
    CHECK(both.keys[0].equals == 2);
    REQUIRE(both.tensors.size() == 2);  // v has what u had
    CHECK(both.tensors[1].tensor == "v");
    REQUIRE(both.presence.size() == 1);
    CHECK(both.presence[0].field == "model.ffn.bias");
}

TEST_CASE("a config.json whose values cannot be is refused by its key") {
    auto common = [](const std::string& type, const json& more) {
        json all = {{"model_type", type},     {"hidden_size", 64},        {"intermediate_size", 96},
                    {"num_hidden_layers", 2}, {"num_attention_heads", 4}, {"max_position_embeddings", 128}};
        all.update(more);
        return all;
    };
    auto read = [](const json& config) {
        const HuggingFaceConfig file(config.dump(), "config.json");
        const ModelConfig c = file.read([](const std::string&) { return false; }, 256);
        return file.vectors(c);
    };
    const json ones = json::array({1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0});
    auto scaled = [&](const json& scaling) { return common("phi3", {{"rope_scaling", scaling}}); };
    auto longrope = [&](const json& list) {
        return scaled({{"type", "longrope"}, {"short_factor", list}, {"long_factor", ones}});
    };
    auto llama3 = [&](double low, double high, double factor, double original) {
        return common("llama", {{"rope_scaling",
                                 {{"rope_type", "llama3"},
                                  {"factor", factor},
                                  {"low_freq_factor", low},
                                  {"high_freq_factor", high},
                                  {"original_max_position_embeddings", original}}}});
    };
    const std::string order =
        "rope_scaling: expected 0 < low_freq_factor < high_freq_factor, 0 < factor, got others";
    const std::pair<json, std::string> rows[] = {
        {json::array(), "expected a JSON object, got array"},
        {common("llama", {{"hidden_size", {64, 64}}}),
         "hidden_size: expected one value for all layers, got [64,64]"},
        {common("llama", {{"head_dim", "wide"}}), "head_dim: model.head_width: expected a whole number"},
        {common("llama", {{"auto_map", 1}, {"model_type", nullptr}, {"architectures", "X"}}),
         "model_type: expected a string, got no such key"},
        {common("granite", {{"logits_scaling", 0}}), "logits_scaling: expected a number other than 0, got 0"},
        {common("granite", {{"logits_scaling", "x"}}),
         "logits_scaling: expected a number other than 0, got \"x\""},
        {common("gemma2", {{"query_pre_attn_scalar", 0}}),
         "query_pre_attn_scalar: expected a number other than 0, got 0"},
        {longrope(nullptr), "rope_scaling.short_factor: expected a list of 8 numbers, got none"},
        {longrope(7), "rope_scaling.short_factor: expected a list of 8 numbers, got number"},
        {longrope({1.0}), "rope_scaling.short_factor: expected a list of 8 numbers, got 1"},
        {longrope({1, 1, 1, 1, 1, 1, 1, "x"}), "rope_scaling.short_factor: expected numbers, got \"x\""},
        {longrope(ones), "accepted"},
        {llama3(4, 1, 8, 64), order},
        {llama3(0, 4, 8, 64), order},
        {llama3(1, 4, 0, 64), order},
        {llama3(1, 4, 8, 0), order},
        {llama3(1, 4, 8, 64), "accepted"},
        {{{"model_type", "mistral3"}}, "text_config: expected an object, got no such key"},
        {{{"model_type", "mistral3"}, {"text_config", 7}}, "text_config: expected an object, got 7"},
        {{{"model_type", "mistral3"}, {"text_config", {{"model_type", "mistral3"}}}},
         "text_config.model_type: expected a model of text, got 'mistral3'"},
        {{{"model_type", "mistral3"}, {"text_config", {{"model_type", "x"}}}},
         "text_config.model_type: expected one of "},
    };
    for (const auto& [config, says] : rows) {
        const std::string line = refusal([&, &config = config] { read(config); });
        CHECK_MESSAGE(line.starts_with((says == "accepted" ? "" : "config.json: ") + says), line);
    }
    // What the vectors say, and of the whole model what its text part does not say itself.
    CHECK(read(longrope(ones)).at("rope_factors_short.weight").size() == 8);
    CHECK(read(llama3(1, 4, 8, 64)).at("rope_freqs.weight").front() == 1);
    const json text = common("mistral", {{"dtype", "float16"}});
    const HuggingFaceConfig part(
        json{{"model_type", "mistral3"}, {"torch_dtype", "bfloat16"}, {"text_config", text}}.dump(), "c");
    CHECK(part.value("torch_dtype") == "bfloat16");
    CHECK(part.value("dtype") == "float16");
    CHECK(part.around()->model_type == "mistral3");
    CHECK(part.path() == "c: text_config");
    CHECK(HuggingFaceConfig(common("llama", {{"new_key", 1}}).dump(), "c").unknown() ==
          std::vector<std::string>{"new_key"});
}
