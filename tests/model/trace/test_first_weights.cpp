// How large first weights are, by what a model's branches are.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "model/small_models.h"
#include "model/trace/trace.h"

using namespace linnet;
using nlohmann::json;

namespace {

constexpr double std_of_all = 0.02;  // model.init_std

/// Of a model's parameters, by name; and its factors of streams (DeepNorm's α), by path.
struct First {
    std::map<std::string, double> deviation, carry;

    explicit First(const json& settings) {
        const TracedModel model = trace(test::config_with(11, {test::small_model, settings}), true);
        for (const Parameter& p : model.graph.parameters()) deviation[p.name] = p.init_std;
        for (const Node& node : model.graph.nodes())
            if (node.path.ends_with(".carry")) carry[node.path] = node.attributes.number("value");
    }
    double at(const std::string& name) const { return deviation.at(name + ".weight") / std_of_all; }
};

const json both = {{"model.kind", "encoder-decoder"}, {"model.layers", 2}, {"model.decoder_layers", 3}};

}  // namespace

TEST_CASE("first weights that end a branch are smaller by the root of their own stack's branches") {
    auto near = [](double x) { return doctest::Approx(x).epsilon(1e-12); };
    const First decoder(json::object());
    for (const char* name : {"blk.0.attn_output", "blk.1.ffn_down"})
        CHECK(decoder.deviation.at(name + std::string(".weight")) == std_of_all / std::sqrt(4.0));
    const First pair(both);
    for (const char* name : {"enc.blk.0.attn_output", "enc.blk.1.ffn_down"})
        CHECK(pair.at(name) == near(1 / std::sqrt(4.0)));
    for (const char* name : {"dec.blk.0.attn_output", "dec.blk.1.cross_attn_output", "dec.blk.2.ffn_down"})
        CHECK(pair.at(name) == near(1 / std::sqrt(9.0)));
    CHECK(pair.at("dec.blk.0.attn_v") == near(1));
    const First single(
        {{"model.mixer", "mamba"}, {"model.position.kind", "none"}, {"model.ffn.kind", "none"}});
    CHECK(single.at("blk.1.ssm_out") == near(1 / std::sqrt(2.0)));
}

TEST_CASE("DeepNorm's factors are those of the paper's figure 2, for each side by the depths of both") {
    struct Side {
        json settings;
        std::string blk;
        double alpha, beta;
    };
    const json deep = {{"model.norm.placement", "deep"}};
    json encoder = deep, pair = deep;
    encoder["model.kind"] = "encoder";
    pair.update(both);
    const Side sides[] = {
        {deep, "blk.", std::pow(4.0, 0.25), std::pow(16.0, -0.25)},
        {encoder, "blk.", std::pow(4.0, 0.25), std::pow(16.0, -0.25)},
        {pair, "enc.blk.", 0.81 * std::pow(16 * 3.0, 0.0625), 0.87 * std::pow(16 * 3.0, -0.0625)},
        {pair, "dec.blk.", std::pow(9.0, 0.25), std::pow(36.0, -0.25)},
    };
    for (const Side& side : sides) {
        CAPTURE(side.blk);
        const First first(side.settings);
        for (const char* branch : {"0.attn", "1.ffn"})
            CHECK(first.carry.at(side.blk + branch + ".carry") == doctest::Approx(side.alpha).epsilon(1e-12));
        for (const char* name : {"0.attn_v", "1.attn_output", "1.ffn_up", "0.ffn_down"})
            CHECK(first.at(side.blk + name) == doctest::Approx(side.beta).epsilon(1e-12));
        for (const char* name : {"0.attn_q", "1.attn_k"}) CHECK(first.at(side.blk + name) == 1);
    }
    const First cross(pair);
    CHECK(cross.carry.at("dec.blk.2.cross.carry") == doctest::Approx(std::pow(9.0, 0.25)).epsilon(1e-12));
    CHECK(cross.at("dec.blk.2.cross_attn_v") == doctest::Approx(std::pow(36.0, -0.25)).epsilon(1e-12));
}
