// The weights of attention, seen from outside, are those that the model uses.
#include "model/look/look.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "model/encoder_files.h"
#include "model/family_files.h"
#include "support.h"

using namespace linnet;

namespace {

/// Weights times values against what each attention made; and that rows sum to 1. Returns how many there
/// were.
std::size_t check_maps(const Model& model, const LookedAt& text) {
    const std::vector<AttentionMap> maps = attention_maps(model, text);
    std::size_t next = 0;
    look_at_values(model, text, [&](const Executor<float>::Watched& made) {
        const Node& node = model.traced().graph.node(made.step.node);
        if (node.op != &attention_op && node.op != &biased_attention_op) return;
        REQUIRE(next < maps.size());
        const AttentionMap& map = maps[next++];
        CHECK(map.path == node.path);
        const std::int64_t d = node.attributes.integer("head_width"), row = made.call.in_width[2];
        const std::int64_t shared = map.heads / node.attributes.integer("kv_heads");
        double sums = 0, products = 0;
        for (std::int64_t h = 0; h < map.heads; h++)
            for (std::int64_t q = 0; q < map.queries; q++) {
                const float* weights = map.head(h).data() + q * map.keys;
                double sum = 0;
                for (std::int64_t k = 0; k < map.keys; k++) sum += static_cast<double>(weights[k]);
                sums = std::max(sums, std::abs(sum - 1));
                for (std::int64_t i = 0; i < d; i++) {
                    double out = 0;
                    for (std::int64_t k = 0; k < map.keys; k++)
                        out += static_cast<double>(weights[k]) *
                               static_cast<double>(made.call.in[2][k * row + h / shared * d + i]);
                    const auto at = static_cast<std::size_t>(q * node.width + h * d + i);
                    products = std::max(products, std::abs(out - static_cast<double>(made.values[at])));
                }
            }
        CHECK(sums < 1e-5);
        CHECK(products < 1e-4);
    });
    CHECK(next == maps.size());
    return next;
}

}  // namespace

TEST_CASE("weights of attention times values are what attention made, in every family") {
    test::Scratch scratch;
    const std::string path = scratch / "m.gguf";
    std::size_t seen = 0;
    for (const test::FamilyFile& file : test::family_files()) {
        CAPTURE(file.name);
        test::write_family_file(file, path);
        const auto model = Model::open(path);
        std::vector<TokenId> tokens = test::family_tokens();
        tokens.resize(std::min<std::size_t>(tokens.size(), 37));  // more keys than a head is wide
        seen += check_maps(*model, {tokens, {}});
    }
    CHECK(seen > 100);
}

TEST_CASE("encoders and both sides of encoder-decoders show their attention, too") {
    test::Scratch scratch;
    const std::string path = scratch / "m.gguf";
    for (const test::EncoderFile& file : test::encoder_files()) {
        CAPTURE(file.name);
        test::write_encoder_file(file, path);
        const auto model = Model::open(path);
        const LookedAt text = model->config().is_encoder()
                                  ? LookedAt{test::source_tokens(), {}}
                                  : LookedAt{test::answer_tokens(), test::source_tokens()};
        CHECK(check_maps(*model, text) >= static_cast<std::size_t>(model->config().layers));
        if (model->config().is_encoder()) continue;
        std::size_t cross = 0, source = 0;
        for (const AttentionMap& map : attention_maps(*model, text)) {
            cross += map.cross, source += map.in_source;
            CHECK(map.queries ==
                  static_cast<std::int64_t>((map.in_source ? text.source : text.tokens).size()));
            CHECK(map.keys ==
                  static_cast<std::int64_t>((map.in_source || map.cross ? text.source : text.tokens).size()));
        }
        CHECK(cross > 0);
        CHECK(source > 0);
    }
}
