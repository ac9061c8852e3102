// Keys of config.json that mean a field by way of others, lists by layer, nulls, and rows that contradict
// themselves.
#include <doctest/doctest.h>

#include <cmath>

#include "base/error.h"
#include "model/huggingface/config.h"
#include "support.h"

using namespace linnet;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// What all families ask for.
json common(const std::string& type) {
    return {{"model_type", type},     {"hidden_size", 64},        {"intermediate_size", 96},
            {"num_hidden_layers", 4}, {"num_attention_heads", 4}, {"max_position_embeddings", 128}};
}

ModelConfig read(const json& config) {
    return HuggingFaceConfig(config.dump(), "config.json")
        .read([](const std::string&) { return false; }, 256);
}

ordered_json written(const std::string& type, const ModelConfig& config) {
    for (const HuggingFaceFamily& family : huggingface_families())
        if (family.model_type == type) return huggingface_config(family, config, {});
    FAIL("no family " << type);
    return {};
}

}  // namespace

TEST_CASE("a key may stand for a power of a field, or for its share of another, and is written so again") {
    json gemma = common("gemma2");
    gemma.update({{"head_dim", 32}, {"query_pre_attn_scalar", 32}});
    CHECK(read(gemma).attention.scale == 0);  // the head's width says as much
    CHECK(written("gemma2", read(gemma))["query_pre_attn_scalar"] == 32);
    gemma["query_pre_attn_scalar"] = 144;
    CHECK(read(gemma).attention.scale == doctest::Approx(1.0 / 12));
    const ordered_json scalar = written("gemma2", read(gemma))["query_pre_attn_scalar"];
    CHECK(scalar == 144);
    CHECK(scalar.is_number_integer());
    gemma.erase("query_pre_attn_scalar");  // 256
    CHECK(read(gemma).attention.scale == 0.0625);
    gemma.erase("head_dim");
    CHECK(read(gemma).head_width == 256);
    CHECK(read(gemma).attention.scale == 0);

    json cpm = common("minicpm");
    cpm.update({{"scale_depth", 1.4}, {"dim_model_base", 16}, {"scale_emb", 12}});
    const ModelConfig c = read(cpm);
    CHECK(c.residual.scale == doctest::Approx(0.7));
    CHECK(c.logits.scale == 0.25);
    CHECK(c.embedding.scale == 12);
    const ordered_json back = written("minicpm", c);
    CHECK(back["scale_depth"] == 1.4);
    CHECK(back["dim_model_base"] == 16);
    CHECK(read(common("minicpm")).residual.scale == 0.5);
    CHECK(read(common("minicpm")).logits.scale == 1.0 / 64);

    json mpt{{"model_type", "mpt"}, {"d_model", 64}, {"n_heads", 4}, {"n_layers", 2}, {"max_seq_len", 128}};
    mpt["attn_config"]["alibi"] = true;
    CHECK(read(mpt).ffn.width.at(0) == 256);
    CHECK(read(mpt).attention.alibi == 8);
    mpt["expansion_ratio"] = 1.51;  // int(96.64)
    CHECK(read(mpt).ffn.width.at(0) == 96);
    CHECK(written("mpt", read(mpt))["expansion_ratio"] == 1.5);
    mpt["expansion_ratio"] = 4;
    CHECK(written("mpt", read(mpt))["expansion_ratio"].is_number_integer());
    mpt["expansion_ratio"] = -4;
    CHECK(test::has(test::refusal([&] { read(mpt); }), "expansion_ratio: expected a share from 0 to 262144"));
}

TEST_CASE(
    "what transformers 5 keeps beside the rotary base is read, and what is not followed there is named") {
    for (const auto& [type, key] : {std::pair("phi3", "partial_rotary_factor"), {"gpt_neox", "rotary_pct"}}) {
        json beside = common(type), within = beside;
        if (type == std::string("phi3"))
            beside["hidden_act"] = within["hidden_act"] = "silu";
        else
            beside["use_parallel_residual"] = within["use_parallel_residual"] = true;
        beside[key] = 0.5;
        within["rope_parameters"] = {
            {"rope_theta", 1e4}, {"rope_type", "default"}, {"partial_rotary_factor", 0.5}};
        CHECK(read(beside).position.rotary_width == 8);
        CHECK(read(within).position.rotary_width == 8);
    }
    json scaled = common("llama");
    scaled["rope_scaling"] = {
        {"rope_type", "yarn"}, {"factor", 4}, {"mscale_all_dim", 0.7}, {"truncate", false}};
    using Keys = std::vector<std::string>;
    CHECK(HuggingFaceConfig(scaled.dump(), "c").unknown() ==
          Keys{"rope_scaling.mscale_all_dim", "rope_scaling.truncate"});
    scaled["rope_scaling"] = {{"rope_type", "llama3"},
                              {"factor", 8},
                              {"low_freq_factor", 1},
                              {"high_freq_factor", 4},
                              {"original_max_position_embeddings", 64}};
    CHECK(HuggingFaceConfig(scaled.dump(), "c").unknown().empty());
    json quantized = common("llama");
    quantized["quantization_config"] = {{"quant_method", "gptq"}, {"bits", 4}};
    CHECK(test::refusal([&] { read(quantized); }) ==
          "config.json: quantization_config: expected none, got an object");
}

TEST_CASE("every whole number that a share can mean survives being written as one") {
    for (std::int64_t width = 2; width < 200; width += 2)
        for (std::int64_t ffn : {width - 1, width + 1, 3 * width + 1, 7 * width - 2}) {
            json mpt{{"model_type", "mpt"}, {"d_model", width}, {"n_heads", 1}, {"n_layers", 1}};
            mpt["max_seq_len"] = 8, mpt["attn_config"]["alibi"] = true;
            ModelConfig c = read(mpt);
            c.ffn.width = ffn;
            mpt["expansion_ratio"] = written("mpt", c)["expansion_ratio"];
            CHECK(read(mpt).ffn.width.at(0) == ffn);
        }
}

TEST_CASE("a key that is null may mean another value than one that is not there") {
    json gemma = common("gemma2");
    CHECK(read(gemma).attention.softcap == 50);
    CHECK(read(gemma).logits.softcap == 30);
    gemma["attn_logit_softcapping"] = nullptr, gemma["final_logit_softcapping"] = nullptr;
    const ModelConfig c = read(gemma);
    CHECK(c.attention.softcap == 0);
    CHECK(c.logits.softcap == 0);
    const ordered_json back = written("gemma2", c);
    REQUIRE(back.contains("attn_logit_softcapping"));
    CHECK(back["attn_logit_softcapping"].is_null());

    json mixture = common("deepseek");
    mixture.update({{"n_routed_experts", 4},
                    {"num_experts_per_tok", 2},
                    {"moe_intermediate_size", 24},
                    {"n_shared_experts", 2}});
    CHECK(read(mixture).experts.shared == 48);
    CHECK(written("deepseek", read(mixture))["n_shared_experts"] == 2);
    mixture["n_shared_experts"] = nullptr;
    CHECK(read(mixture).experts.shared == 0);
    CHECK(written("deepseek", read(mixture))["n_shared_experts"].is_null());
    mixture["norm_topk_prob"] = true;
    CHECK(test::has(test::refusal([&] { read(mixture); }), "norm_topk_prob: expected false, got true"));
}

TEST_CASE("a Gemma 3 that says little is as its class's defaults") {
    const ModelConfig c = read({{"model_type", "gemma3_text"}, {"num_hidden_layers", 6}});
    CHECK(c.width == 2304);
    CHECK(c.ffn.width.at(0) == 9216);
    CHECK(c.heads.at(0) == 8);
    CHECK(c.kv_heads.at(0) == 4);
    CHECK(c.head_width == 256);
    CHECK(c.context == 131072);
    CHECK(read({{"model_type", "gemma3_text"}}).layers == 26);
}

TEST_CASE("lists by layer have a value for each, and are written as lists") {
    json deci = common("deci");
    deci["num_key_value_heads_per_layer"] = {4, 2, 2, 1};
    const ModelConfig c = read(deci);
    CHECK(c.kv_heads.at(1) == 2);
    CHECK(c.kv_heads.at(3) == 1);
    CHECK(written("deci", c)["num_key_value_heads_per_layer"] == ordered_json({4, 2, 2, 1}));
    deci["num_key_value_heads_per_layer"] = {2, 2};
    CHECK(test::has(test::refusal([&] { read(deci); }),
                    "num_key_value_heads_per_layer: expected 4 values, one per layer, got 2"));
    deci.erase("num_key_value_heads_per_layer"), deci["num_key_value_heads"] = 2;
    CHECK(written("deci", read(deci))["num_key_value_heads_per_layer"] == ordered_json({2, 2, 2, 2}));
    deci["block_configs"] = json::array({{{"ffn", {{"ffn_mult", 2.5}}}}});
    CHECK(test::has(test::refusal([&] { read(deci); }), "block_configs: expected \"none\""));
    CHECK(test::has(test::refusal([&] { read(common("nemotron-nas")); }), "nemotron-nas"));
}

TEST_CASE("MPT's heads, positions and biases are told by several keys at once") {
    json mpt{{"model_type", "mpt"}, {"d_model", 64}, {"n_heads", 4}, {"n_layers", 2}, {"max_seq_len", 128}};
    CHECK(test::has(test::refusal([&] { read(mpt); }), "attn_config.alibi: expected a value"));
    mpt["attn_config"] = {{"alibi", false}, {"attn_type", "multiquery_attention"}, {"alibi_bias_max", 4}};
    CHECK(read(mpt).attention.alibi == 0);
    CHECK(read(mpt).kv_heads.at(0) == 1);
    const ordered_json grouped = written("mpt", read(mpt))["attn_config"];
    CHECK(grouped["attn_type"] == "grouped_query_attention");
    CHECK(grouped["kv_n_heads"] == 1);
    CHECK(grouped["alibi"] == false);
    CHECK(!grouped.contains("alibi_bias_max"));
    mpt["attn_config"] = {{"alibi", true}, {"attn_type", "multihead_attention"}, {"alibi_bias_max", 4}};
    CHECK(read(mpt).attention.alibi == 4);
    CHECK(read(mpt).kv_heads.at(0) == 4);
    const ordered_json plain = written("mpt", read(mpt));
    CHECK(plain["attn_config"]["attn_type"] == "multihead_attention");
    CHECK(!plain["attn_config"].contains("kv_n_heads"));
    CHECK(plain["attn_config"]["alibi"] == true);
    CHECK(plain["no_bias"] == true);
    CHECK(plain["learned_pos_emb"] == false);
    mpt["attn_config"]["qk_ln"] = true;
    CHECK(test::has(test::refusal([&] { read(mpt); }), "attn_config.qk_ln: expected false, got true"));
    mpt["attn_config"].erase("qk_ln"), mpt["attn_config"]["attn_type"] = "grouped_query_attention";
    CHECK(test::has(test::refusal([&] { read(mpt); }),
                    "attn_config.attn_type: expected one of multihead_attention"));
}

TEST_CASE("a folder whose class comes as code need not say its model type") {
    json cpm = common("minicpm");
    cpm.erase("model_type");
    cpm["architectures"] = {"MiniCPMForCausalLM"};
    CHECK(test::has(test::refusal([&] { read(cpm); }), "model_type: expected a string, got no such key"));
    cpm["auto_map"]["AutoConfig"] = "configuration_minicpm.MiniCPMConfig";
    CHECK(HuggingFaceConfig(cpm.dump(), "config.json").family().model_type == "minicpm");
    cpm["architectures"] = {"AnotherForCausalLM"};
    CHECK(test::has(test::refusal([&] { read(cpm); }), "model_type: expected a string, got no such key"));
}

TEST_CASE("a period and an offset say which layers have attention, and which experts") {
    json jamba = common("jamba");
    jamba.update({{"num_key_value_heads", 2}, {"attn_layer_period", 3}, {"attn_layer_offset", 1}});
    jamba.update({{"num_experts", 4}, {"mamba_dt_rank", 4}, {"num_hidden_layers", 6}});
    const ModelConfig c = read(jamba);
    for (std::int64_t layer = 0; layer < 6; layer++) {
        CHECK(c.mixer.at(layer) == (layer % 3 == 1 ? "attention" : "mamba"));
        CHECK(c.experts.count.at(layer) == (layer % 2 == 1 ? 4 : 0));  // as where no key says it
    }
    ordered_json back = written("jamba", c);
    for (const char* key : {"attn_layer_period", "attn_layer_offset", "num_experts"})
        CHECK(json(back[key]) == jamba[key]);
    CHECK(back["expert_layer_period"] == 2);
    CHECK(back["expert_layer_offset"] == 1);
    jamba["num_experts"] = 1;
    CHECK(read(jamba).experts.count.at(1) == 0);
    CHECK(written("jamba", read(jamba))["num_experts"] == 1);
    CHECK(!written("jamba", read(jamba)).contains("expert_layer_period"));
    jamba["attn_layer_offset"] = 3;
    CHECK(test::has(test::refusal([&] { read(jamba); }),
                    "attn_layer_offset: expected a whole number from 0 to 2, got 3"));
    jamba["attn_layer_period"] = 0;
    CHECK(
        test::has(test::refusal([&] { read(jamba); }), "attn_layer_period: expected a whole number from 1"));
    jamba["attn_layer_period"] = 2.5;
    CHECK(test::has(test::refusal([&] { read(jamba); }), "got 2.5"));
    jamba.erase("mamba_dt_rank"), jamba["hidden_size"] = 68, jamba["num_attention_heads"] = 2;
    jamba["attn_layer_period"] = 4;
    CHECK(read(jamba).ssm.rank == 5);  // 68 / 16, rounded up
    ModelConfig uneven = read(jamba);
    uneven.mixer = PerLayer<std::string>(std::vector<std::string>{"attention", "attention", "mamba"});
    CHECK(written("jamba", uneven).is_null());
}

TEST_CASE("of all periods and offsets that say a model's layers the least is written") {
    json jamba = common("jamba");
    jamba.update({{"num_key_value_heads", 2}, {"num_experts", 4}, {"mamba_dt_rank", 4}});
    for (int layers = 1; layers <= 7; layers++) {
        jamba["num_hidden_layers"] = layers;
        ModelConfig c = read(jamba);
        for (int marked = 0; marked < 1 << layers; marked++) {
            CAPTURE(layers);
            CAPTURE(marked);
            std::vector<std::string> mixers;
            for (int l = 0; l < layers; l++) mixers.emplace_back(marked >> l & 1 ? "attention" : "mamba");
            c.mixer = PerLayer<std::string>(mixers);
            std::pair<int, int> least{0, 0};
            for (int period = 1; least.first == 0 && period <= layers + 1; period++)
                for (int offset = 0; least.first == 0 && offset < period; offset++) {
                    bool all = true;
                    for (int l = 0; l < layers; l++) all &= (marked >> l & 1) == (l % period == offset);
                    if (all) least = {period, offset};
                }
            const ordered_json back = written("jamba", c);
            REQUIRE(back.is_null() == (least.first == 0));
            if (back.is_null()) continue;
            CHECK(back["attn_layer_period"] == least.first);
            CHECK(back["attn_layer_offset"] == least.second);
        }
    }
}

TEST_CASE("the width of Mamba 2's heads and its expansion are told twice, and have to agree") {
    json mamba{{"model_type", "mamba2"}, {"hidden_size", 64}, {"num_hidden_layers", 2}, {"num_heads", 4}};
    mamba.update({{"head_dim", 32}, {"expand", 2}, {"n_groups", 1}});
    CHECK(read(mamba).ssm.inner == 128);
    CHECK(written("mamba2", read(mamba))["head_dim"] == 32);
    CHECK(written("mamba2", read(mamba))["expand"] == 2);
    mamba["time_step_limit"] = {0.0, 3.4028234663852886e+38};
    CHECK(test::refusal([&] { read(mamba); }) == "accepted");
    mamba["time_step_limit"] = {0.0, 0.1};
    CHECK(test::has(test::refusal([&] { read(mamba); }), "time_step_limit: expected [0.0,3.402"));
    mamba.erase("time_step_limit"), mamba["expand"] = 3;
    CHECK(
        test::has(test::refusal([&] { read(mamba); }), "expand: expected 128, as another key says, got 192"));
}

TEST_CASE("a width that no key says is a multiple, and experts that are not weighed to 1 are refused") {
    json refact{{"model_type", "gpt_refact"}, {"n_embd", 64}, {"n_layer", 1}, {"n_head", 4}};
    for (const auto& [width, ffn] : {std::pair(64, 256), {96, 256}, {100, 512}, {1024, 2816}}) {
        refact["n_embd"] = width;
        CHECK(read(refact).ffn.width.at(0) == ffn);
    }
    json dbrx{{"model_type", "dbrx"}, {"d_model", 64}, {"n_layers", 1}, {"n_heads", 4}};
    for (const json& one : {json(), json(1), json(1.0)}) {
        if (!one.is_null()) dbrx["ffn_config"]["moe_normalize_expert_weights"] = one;
        CHECK(read(dbrx).experts.renormalize);
    }
    dbrx["ffn_config"]["moe_normalize_expert_weights"] = nullptr;
    CHECK(!read(dbrx).experts.renormalize);  // which GGUF's family cannot say
    dbrx["ffn_config"]["moe_normalize_expert_weights"] = 2;
    CHECK(test::has(test::refusal([&] { read(dbrx); }),
                    "moe_normalize_expert_weights: expected one of 1, 1.0"));
}

TEST_CASE("of two families with one model type the class decides") {
    json t5{{"model_type", "t5"}, {"d_model", 64}, {"d_kv", 16}, {"d_ff", 96}, {"num_heads", 4}};
    t5["num_layers"] = 2;
    CHECK(read(t5).kind == "encoder-decoder");
    t5["architectures"] = {"T5Model"};
    CHECK(read(t5).kind == "encoder-decoder");
    t5["architectures"] = {"T5EncoderModel"};
    CHECK(read(t5).is_encoder());
}

TEST_CASE("rows that contradict themselves are refused with their place") {
    auto tensor = [](const json& row) {
        return test::refusal([&] {
            Architecture a;
            a.name = "llama", a.constants = json::object();
            a.huggingface = {{"model_type", "x"}, {"class", "X"}, {"tensors", json::array({row})}};
            parse_huggingface(a, "models/architectures/llama.json", architecture_files());
        });
    };
    const json two = {"blk.{layer}.attn_q", "blk.{layer}.attn_k"};
    CHECK(tensor({{"tensor", "a"}, {"holds", two}, {"permute", {"model.heads", ""}}}) == "accepted");
    CHECK(test::has(tensor({{"tensor", "a"}, {"holds", two}, {"permute", "model.heads"}}),
                    "huggingface.tensors[0].permute: expected a field for each parameter"));
    CHECK(
        test::has(tensor({{"tensor", "a"}, {"holds", two}, {"permute", {"model.heds", ""}}}), "model.heds"));
    CHECK(test::has(tensor({{"tensor", "a"}, {"holds", two}, {"permute", {1, 2}}}), "expected fields"));
    CHECK(test::has(tensor({{"tensor", "a"}, {"holds", two}, {"stacks", "model.layers"}}),
                    "huggingface.tensors[0]: expected transpose beside stacks, got none"));
    auto with = [](const json& row) {
        return test::refusal([&] {
            Architecture a;
            a.name = "llama", a.constants = json::object();
            a.huggingface = {{"model_type", "x"}, {"class", "X"}, {"keys", json::array({row})}};
            parse_huggingface(a, "models/architectures/llama.json", architecture_files());
        });
    };
    const json from = {{"from", "model.width"}, {"times", 1}, {"power", 1}};
    CHECK(with({{"key", "a"}, {"field", "model.ffn.width"}, {"times", from}}) == "accepted");
    CHECK(test::has(with({{"key", "a"}, {"field", "model.ffn.width"}, {"power", 0}}),
                    "huggingface.keys[0].power: expected a number other than 0, got 0"));
    CHECK(test::has(with({{"key", "a"}, {"equals", 1}, {"times", from}}),
                    "huggingface.keys[0]: expected a field beside times and power"));
    CHECK(
        test::has(with({{"key", "a"}, {"field", "model.ffn.width"}, {"times", "model.wide"}}), "model.wide"));
    CHECK(test::has(with({{"key", "a"}, {"field", "model.ffn.width"}, {"times", true}}),
                    "huggingface.keys[0].times: expected a string, got true"));
    json multiple = from;
    multiple["multiple"] = 0;
    CHECK(test::has(with({{"key", "a"}, {"field", "model.ffn.width"}, {"missing", multiple}}),
                    "huggingface.keys[0].missing.multiple: expected a number above 0, got 0"));
    json marks{{"key", "a"}, {"field", "model.experts.count"}, {"offset", "b"}, {"unmarked", 0}};
    CHECK(test::has(with(marks), "huggingface.keys[0].missing: expected a period and an offset, got null"));
    marks["missing"] = {2, 1};
    CHECK(with(marks) == "accepted");
    json only = from;
    only["only"]["model.layers"] = 4;
    CHECK(test::has(with({{"key", "a"}, {"field", "model.ffn.width"}, {"zero_means", only}}),
                    "huggingface.keys[0].zero_means: expected an object without only"));
    CHECK(test::has(with({{"key", "a"}, {"field", "model.ffn.width"}, {"null", "none"}}), "model.ffn.width"));
}
