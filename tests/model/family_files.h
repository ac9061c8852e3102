// Small random models of the families in models/architectures, written from what GGUF's writers write for
// them: not by the rows that linnet reads them by.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace linnet::test {

using KeyValue =
    std::variant<std::uint32_t, float, bool, std::string, std::vector<std::int32_t>, std::vector<bool>>;

/// A tensor beside the usual ones. In a name, "{}" stands for each layer's number. Of a vector, columns is 0.
struct ExtraTensor {
    std::string name;
    std::int64_t rows, columns = 0;
    float mean = 0, deviation = 0.3F;
    std::vector<std::int64_t> shape = {};  // the outermost first; none: [rows, columns]
};

/// One file. Letters as in model/config/config.h.
struct FamilyFile {
    std::string name, arch;
    std::int64_t layers = 3, width = 64, heads = 4, kv_heads = 2, head = 0, ffn = 96, context = 256;
    std::string norm =
        "rms";  // rms, layer, plain (LayerNorm without biases), none (LayerNorm without weights)
    bool gated = true, tied = false;
    bool q_bias = false, o_bias = false, ffn_bias = false, output_bias = false;
    bool fused_qkv = false, fused_ffn = false;
    bool position_embd = false, embd_norm = false;
    std::vector<std::string> norms = {"attn_norm", "ffn_norm"};  // of a layer
    std::string qk_norm = "";         // "head": [D], "heads": [H, D], "full": [H D]
    bool rope = true, kv_key = true;  // the keys of RoPE, and head_count_kv
    std::int64_t rotary = -1;         // rope.dimension_count; -1: D, 0: no such key
    float theta = 10000;
    std::vector<std::pair<std::string, KeyValue>> keys = {};
    std::vector<ExtraTensor> tensors = {};
    std::vector<std::int64_t> kv_by_layer = {};
    std::vector<std::string> mixers = {};  // of the layers in turn (recurrent_files.h); none: attention
    std::string second = "ffn";            // the second part of a layer: ffn, none
    std::int64_t experts = 0, used = 0, expert_ffn = 0, shared_ffn = 0;  // a mixture in every layer
    std::int64_t dense = 0;                                              // but so many first ones
    std::vector<std::int64_t> expert_layers = {};  // 1: with experts, in turn; none: as `dense` says
    bool shared_gate = false;
};

/// Those of family_files.json: of each, what its architecture's row of "shapes" says, then its own.
const std::vector<FamilyFile>& family_files();
/// The one of this name; throws where there is none.
const FamilyFile& family_file(std::string_view name);

/// Writes the file; without the key or the tensor named `leave_out`.
void write_family_file(const FamilyFile& file, const std::string& path, const std::string& leave_out = "");

/// The tokens that are given to every model.
std::vector<std::int32_t> family_tokens();
/// Logits that are recorded after token `position`: four ids.
std::vector<std::int32_t> family_probes(std::int64_t position, std::int64_t vocabulary);

}  // namespace linnet::test
