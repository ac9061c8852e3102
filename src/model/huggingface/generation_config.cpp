#include "model/huggingface/generation_config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/fields.h"
#include "base/json_line.h"
#include "model/huggingface/config.h"

namespace linnet {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

const std::string kept_generation = "linnet.huggingface.generation_config";

/// A setting of transformers' GenerationConfig that GGUF has a name for (llama.cpp,
/// gguf-py/gguf/constants.py, Keys.General; its programs take them for their defaults).
struct SamplingKey {
    const char *key, *gguf;
    bool whole;
};
constexpr SamplingKey sampling_keys[] = {
    {"temperature", "general.sampling.temp", false},
    {"top_k", "general.sampling.top_k", true},
    {"top_p", "general.sampling.top_p", false},
    {"min_p", "general.sampling.min_p", false},
    {"repetition_penalty", "general.sampling.penalty_repeat", false},
};

/// Whether it can be a number of 32 bits, whole where the row says so.
bool fits(const SamplingKey& row, double value) {
    const double most = row.whole ? double{INT32_MAX} : double{std::numeric_limits<float>::max()};
    return std::abs(value) <= most && (!row.whole || value == std::floor(value));  // false of NaN
}

/// Whether what was kept says of sampling what the file's own keys say.
bool agrees(const json& kept, const Gguf& file) {
    return std::ranges::all_of(sampling_keys, [&](const SamplingKey& row) {
        const json value = kept.value(row.key, json());
        const auto own = file.number(row.gguf);
        if (!own || value.is_null()) return !own && value.is_null();
        return value.is_number() && fits(row, value.get<double>()) &&
               value.get<float>() == static_cast<float>(*own);
    });
}

}  // namespace

void add_generation_config(GgufWriter& metadata, std::string_view text, const std::string& path) {
    const auto require_small = [&](std::size_t bytes) {
        if (bytes > largest_generation)
            fail_input(path, "", "at most " + std::to_string(largest_generation) + " bytes",
                       std::to_string(bytes));
    };
    require_small(text.size());
    const json object = parse_json(text, path);
    if (!object.is_object()) fail_input(path, "", "an object", object.type_name());
    for (const SamplingKey& row : sampling_keys) {
        const json value = object.value(row.key, json());
        if (value.is_null()) continue;
        if (!value.is_number() || !fits(row, value.get<double>()))
            fail_input(path, row.key, row.whole ? "a whole number of 32 bits" : "a number of 32 bits",
                       dumped(value));
        row.whole ? metadata.add(row.gguf, value.get<std::int32_t>())
                  : metadata.add(row.gguf, value.get<float>());
    }
    const std::string kept = ordered_json::parse(text).dump();
    require_small(kept.size());  // numbers may have become longer, and it is read again
    metadata.add(kept_generation, std::string_view(kept));
}

ordered_json generation_config(const Gguf& file, const SpecialIds& special) {
    if (const auto kept = file.string(kept_generation); kept && kept->size() <= largest_generation) {
        try {
            const json object = parse_json(*kept, kept_generation);
            if (object.is_object() && agrees(object, file)) return ordered_json::parse(*kept);
        } catch (const Error&) {  // of another program, or damaged: one is made
        }
    }
    ordered_json json = ordered_json::object();
    if (special.bos) json["bos_token_id"] = *special.bos;
    ordered_json ends = ordered_json::array();
    for (auto id : {special.eos, special.eot, special.eom})
        if (id && std::find(ends.begin(), ends.end(), *id) == ends.end()) ends.push_back(*id);
    if (!ends.empty()) json["eos_token_id"] = ends.size() == 1 ? ends[0] : ends;
    bool any = false;
    for (const SamplingKey& row : sampling_keys)
        if (const auto value = file.number(row.gguf); value && fits(row, *value)) {
            any = true;
            row.whole ? json[row.key] = static_cast<std::int64_t>(*value) : json[row.key] = shortest(*value);
        }
    if (any) json["do_sample"] = json.value("temperature", 1.0) > 0;  // without it the values mean nothing
    return json;
}

}  // namespace linnet
