// One text run by itself and looked at from inside: every value, or the weights of attention.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/executor.h"
#include "model/model.h"

namespace linnet {

/// A text; of an encoder–decoder its source, too (empty: the text itself).
struct LookedAt {
    std::vector<TokenId> tokens, source;
};

/// A batch of the text alone, for the program "logits"; one row of it has logits, the last. Plans for it have
/// room for {rows, 1, rows of the source}. Error(Exit::input) for a model of pictures, and where a text does
/// not fit the context.
Batch batch_of(const Model& model, const LookedAt& text);

/// Runs the program "logits" over the text without states, on one thread, calling `see` after every step.
/// Errors as batch_of.
void look_at_values(const Model& model, const LookedAt& text,
                    const std::function<void(const Executor<float>::Watched&)>& see);

/// What one attention made of a text: [heads, queries, keys], each row of keys sums to 1.
struct AttentionMap {
    std::string path;        // "blk.0.attn"
    bool in_source = false;  // the queries are rows of the source
    bool cross = false;      // the keys alone are
    std::int64_t heads = 0, queries = 0, keys = 0;
    std::vector<float> weights;

    std::span<const float> head(std::int64_t h) const {
        const auto size = static_cast<std::size_t>(queries * keys);
        return std::span(weights).subspan(static_cast<std::size_t>(h) * size, size);
    }
};

/// Of every layer that has attention to rows of a text, not projected ones, in the order of the run. Errors
/// as look_at_values.
std::vector<AttentionMap> attention_maps(const Model& model, const LookedAt& text);

}  // namespace linnet
