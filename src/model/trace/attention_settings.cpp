#include "model/trace/attention_settings.h"

namespace linnet {
namespace {

double number(std::int64_t n) {
    return static_cast<double>(n);
}

}  // namespace

std::int64_t projected_at(const ModelConfig& c, std::int64_t layer, bool self, bool causal) {
    return self && !causal ? c.attention.projected.at(layer) : 0;
}

Attributes attention_settings(const ModelConfig& config, std::int64_t layer, bool self, bool causal,
                              bool training) {
    const auto& c = config.attention;
    Attributes a{{"heads", number(config.heads.at(layer))},
                 {"kv_heads", number(config.kv_heads.at(layer))},
                 {"head_width", number(config.head_width)},
                 {"window", self ? number(c.window.at(layer)) : 0},
                 {"causal", causal ? 1.0 : 0.0}};
    const std::int64_t projected = projected_at(config, layer, self, causal);
    if (projected > 0) a.set("projected", number(projected));
    if (c.globals > 0 && self && !projected) a.set("globals", number(c.globals));
    if (c.random > 0 && self && c.window.at(layer) > 0) {
        a.set("random", number(c.random));
        a.set("blocks", number(config.choice_blocks()));
        a.set("seed", number(c.random_seed * most_layers + layer));  // another choice in every layer
    }
    if (c.softcap != 0) a.set("softcap", c.softcap);
    if (c.alibi != 0 && self) a.set("alibi", c.alibi);
    if (training && c.dropout > 0) a.set("dropout", c.dropout);
    return a;
}

}  // namespace linnet
