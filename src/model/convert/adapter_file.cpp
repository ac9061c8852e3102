// Adapters' files, held against the models that they are for; models with adapters made part of them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/processors.h"
#include "base/signals.h"
#include "base/split.h"
#include "base/team.h"
#include "kernels/kernels.h"
#include "model/adapter.h"
#include "model/convert/source.h"
#include "model/name_pattern.h"
#include "model/narrow.h"
#include "model/rewrite.h"
#include "ops/experts.h"
#include "text/chat/carried.h"
#include "text/chat/template.h"

namespace linnet {
namespace {

constexpr const char* general_type = "general.type";
constexpr const char* adapter_type = "adapter.type";
constexpr const char* adapter_invocation = "adapter.alora.invocation_tokens";
constexpr const char* adapter_alpha = "adapter.lora.alpha";

/// A matrix, or one for each expert.
Shape shape_of(std::int64_t experts, std::int64_t rows, std::int64_t columns) {
    Shape shape(rows, columns);
    if (experts > 0) shape.dim = {experts, rows, columns, 1}, shape.rank = 3;
    return shape;
}

/// A first dimension of 1, which some tensors have, their adapters lack.
Shape without_leading_one(const Shape& s) {
    return s.rank == 3 && s.dim[0] == 1 ? Shape(s.dim[1], s.dim[2]) : s;
}

/// What a target's tensor is in the model's file.
struct Place {
    std::int64_t experts, rows, columns;  // rows: of each expert
};
Place place_of_tensor(const Model& model, const AdapterTarget& target) {
    const Shape& s = model.file()->tensor(target.tensor)->shape;
    return s.rank == 3 ? Place{s.dim[0], s.dim[1], s.dim[2]} : Place{0, s.dim[0], s.dim[1]};
}

/// A tensor of an adapter's file as f32, in memory that `kept` holds.
Tensor load(const GgufTensor& t, std::vector<std::vector<float>>& kept) {
    kept.emplace_back(static_cast<std::size_t>(t.shape.count()));
    kernels().load(t.shape.count(), t.type, t.bytes.data(), kept.back().data());
    return {kept.back().data(), DType::f32, t.shape};
}

}  // namespace

std::vector<AdapterTarget> adaptable_tensors(const Model& model) {
    const Graph& graph = model.traced().graph;
    std::set<ParameterId> linear;
    for (const Node& node : graph.nodes())
        if (node.block != none && (node.op == &linear_op || node.op == &expert_linear_op))
            linear.insert(node.parameters[0]);
    std::vector<AdapterTarget> targets;
    for (const StoredTensor& stored : stored_tensors(graph, model.architecture(), model.file())) {
        AdapterTarget target{stored.name, {}};
        bool all = stored.parts.size() == 1 || stored.shape.rank == 2;
        for (std::size_t part : stored.parts) {
            all &= linear.contains(static_cast<ParameterId>(part));
            target.parameters.push_back(graph.parameters()[part].name);
        }
        if (all && stored.shape.rank > 1) targets.push_back(std::move(target));
    }
    return targets;
}

std::vector<AdapterTarget> choose_targets(const Model& model, const std::string& patterns,
                                          std::int64_t deepest, const std::string& where) {
    std::vector<AdapterTarget> all = adaptable_tensors(model), chosen;
    const std::vector<std::string_view> wanted = split(patterns, ',');
    auto fits = [](std::string_view pattern, const std::string& tensor) {
        return matches(pattern, tensor) || matches("*blk.*." + std::string(pattern) + ".weight", tensor);
    };
    for (std::string_view pattern : wanted)
        if (std::none_of(all.begin(), all.end(), [&](const auto& t) { return fits(pattern, t.tensor); }))
            fail_input(where, "", "names of linear layers, such as " + all.front().tensor + " or attn_*",
                       quoted(pattern), "linnet inspect lists a model's tensors");
    for (AdapterTarget& target : all) {
        if (!parts_of(target.tensor).layer.empty() && depth_of(target.tensor, model.config()) > deepest)
            continue;
        const bool router = target.tensor.find(".ffn_gate_inp") != target.tensor.npos;
        const bool wants = std::any_of(wanted.begin(), wanted.end(),
                                       [&](std::string_view p) { return fits(p, target.tensor); });
        if (wanted.empty() ? !router : wants) chosen.push_back(std::move(target));
    }
    if (chosen.empty()) fail_input(where, "", "linear layers to adapt", "none");
    return chosen;
}

bool is_adapter(const Gguf& file) {
    return file.string(general_type) == "adapter";
}

bool is_alpha(double alpha) {
    return std::abs(alpha) <= double{std::numeric_limits<float>::max()} &&  // false of NaN
           (alpha == 0 || static_cast<float>(alpha) != 0);
}

namespace {

/// Refuses a file that is no LoRA adapter for a model like `base`; returns alpha, 0 where it says none.
double check_header(const Gguf& file, const Model& base) {
    if (!is_adapter(file))
        fail_input(file.path(), general_type, "adapter",
                   std::string(file.string(general_type).value_or("none")));
    if (file.string(adapter_type) != "lora")
        fail_input(file.path(), adapter_type, "lora",
                   std::string(file.string(adapter_type).value_or("none")));
    if (file.find(adapter_invocation))
        fail_input(file.path(), adapter_invocation, "an adapter for all tokens", "one for those behind some");
    const std::string made_for(file.string("general.architecture").value_or("none"));
    if (made_for != base.architecture().name)
        fail_input(file.path(), "general.architecture",
                   base.architecture().name + ", as " + base.path() + " is", made_for);
    const double alpha = file.number(adapter_alpha).value_or(0);
    if (!is_alpha(alpha)) fail_input(file.path(), adapter_alpha, expected_alpha, "another");
    return alpha;
}

/// Refuses a tensor of the file that is of none of the targets.
void refuse_others(const Gguf& file, const Model& base, const std::vector<AdapterTarget>& targets) {
    for (const GgufTensor& t : file.tensors()) {
        const auto known = [&](const AdapterTarget& target) {
            return t.name == target.tensor + lora_a || t.name == target.tensor + lora_b;
        };
        if (std::none_of(targets.begin(), targets.end(), known))
            fail_input(file.path(), std::string(t.name),
                       "lora_a or lora_b of a linear layer of " + base.path() + "'s blocks", "another tensor",
                       "made for another model?");
    }
}

}  // namespace

Adapter adapter_of_gguf(const Gguf& file, const Model& base, double scale) {
    const double alpha = check_header(file, base);
    Adapter adapter;
    auto values = std::make_shared<std::vector<std::vector<float>>>();
    for (AdapterTarget& target : adaptable_tensors(base)) {
        const GgufTensor* a = file.tensor(target.tensor + lora_a);
        const GgufTensor* b = file.tensor(target.tensor + lora_b);
        if (!a && !b) continue;
        if (!a || !b)
            fail_input(file.path(), target.tensor, "lora_a and lora_b", a ? "lora_a alone" : "lora_b alone");
        const Place place = place_of_tensor(base, target);
        target.rank = a->shape.dim[static_cast<std::size_t>(std::max(a->shape.rank - 2, 0))];
        const std::pair<const GgufTensor*, Shape> expected[] = {
            {a, shape_of(place.experts, target.rank, place.columns)},
            {b, shape_of(place.experts, place.rows, target.rank)}};
        for (const auto& [tensor, shape] : expected) {
            if (without_leading_one(tensor->shape) != without_leading_one(shape))
                fail_input(file.path(), std::string(tensor->name),
                           "shape " + shape_text(shape) + " (of " + base.path() + ")",
                           shape_text(tensor->shape), "made for another model?");
            if (!info(tensor->type).is_weight)
                fail_input(file.path(), std::string(tensor->name), "weights",
                           std::string(info(tensor->type).name));
        }
        target.scale = scale * (alpha != 0 ? alpha / static_cast<double>(target.rank) : 1);
        adapter.pairs.push_back({load(*a, *values), load(*b, *values)});
        adapter.shape.targets.push_back(std::move(target));
    }
    const std::vector<AdapterTarget>& found = adapter.shape.targets;
    if (2 * found.size() != file.tensors().size()) refuse_others(file, base, found);
    if (found.empty()) fail_input(file.path(), "", "lora_a and lora_b of some tensors", "none");
    adapter.keep = values;
    adapter.alpha = alpha;
    adapter.chat_template = carried_by(file);
    return adapter;
}

std::shared_ptr<const Model> open_with_adapters(const std::string& path,
                                                const std::vector<AdapterChoice>& choices) {
    std::shared_ptr<const Model> base = Model::open(path);
    std::vector<Adapter> adapters;
    for (const AdapterChoice& choice : choices) adapters.push_back(open_adapter(choice, *base));
    return adapters.empty() ? base : with_adapters(base, adapters);
}

std::string save_adapter(const std::string& path, const std::string& architecture,
                         const std::vector<AdapterTarget>& targets, const std::vector<AdapterPair>& pairs,
                         double alpha, const std::string& name, const Provenance& provenance,
                         Existing existing, std::string_view chat_template) {
    GgufWriter out;
    out.add("general.architecture", architecture);
    out.add(general_type, "adapter");
    out.add("general.name", name);
    out.add(adapter_type, "lora");
    out.add(adapter_alpha, static_cast<float>(alpha));
    if (!chat_template.empty()) out.add(chat_template_key, chat_template);
    for (const auto& [key, value] : provenance) out.add("linnet." + key, value);
    for (std::size_t i = 0; i < targets.size(); i++) {
        const double told = alpha != 0 ? alpha / static_cast<double>(targets[i].rank) : 1;
        const auto add = [&](std::string_view suffix, const Tensor& tensor, float factor) {
            out.add_tensor(
                targets[i].tensor + std::string(suffix), DType::f32, tensor.shape,
                [tensor, factor](const GgufWriter::Sink& sink) {
                    std::vector<float> values(tensor.as<float>(), tensor.as<float>() + tensor.shape.count());
                    if (factor != 1)
                        kernels().scale(tensor.shape.count(), factor, values.data(), values.data());
                    sink(values.data(), values.size() * sizeof(float));
                });
        };
        add(lora_a, pairs[i].a, 1);
        add(lora_b, pairs[i].b, static_cast<float>(targets[i].scale / told));
    }
    return out.write(path, existing);
}

namespace {

/// What an adapter adds to one tensor.
struct Change {
    double scale;
    std::int64_t rank, rows;  // rows: of each expert
    const float *a, *b;

    /// Of row `row`, added to `values` [columns]; `sum` is memory for it.
    void add(std::int64_t row, std::int64_t columns, std::vector<float>& sum, float* values) const {
        const float* first = a + row / rows * rank * columns;
        std::fill(sum.begin(), sum.end(), 0.0F);
        for (std::int64_t k = 0; k < rank; k++) {
            const float weight = b[row * rank + k], *from = first + k * columns;
            for (std::int64_t c = 0; c < columns; c++) sum[static_cast<std::size_t>(c)] += weight * from[c];
        }
        const auto factor = static_cast<float>(scale);
        for (std::int64_t c = 0; c < columns; c++) values[c] += factor * sum[static_cast<std::size_t>(c)];
    }
};

/// What is wrong with a row of sums.
enum class Fault : std::uint8_t { none, not_finite, too_large };

void emit_changed(const std::string& path, const GgufTensor& t, DType type,
                  const std::vector<Change>& changes, int threads, const GgufWriter::Sink& sink) {
    const std::int64_t columns = t.shape.columns(), rows = t.shape.count() / columns,
                       some = rows_at_a_time(columns);
    const Tensor from{const_cast<std::byte*>(t.bytes.data()), t.type, t.shape};
    std::vector<std::byte> bytes;
    std::vector<Fault> faults;
    const auto size = static_cast<std::size_t>(columns * info(type).bytes);
    for (std::int64_t begin = 0; begin < rows; begin += some) {
        if (int signal = stop_signal()) throw Stopped{signal};
        const std::int64_t count = std::min(some, rows - begin);
        bytes.resize(static_cast<std::size_t>(count) * size);
        faults.assign(static_cast<std::size_t>(count), Fault::none);
        run_team(threads_or_cores(threads), [&](Worker worker) {
            std::vector<float> values(static_cast<std::size_t>(columns)), sum(values.size());
            const Range range = worker.share(count);
            for (std::int64_t i = range.begin; i < range.end; i++) {
                kernels().load(columns, t.type, from.row(begin + i), values.data());
                for (const Change& change : changes) change.add(begin + i, columns, sum, values.data());
                const auto at = static_cast<std::size_t>(i);
                if (!std::isfinite(kernels().sum_squares(columns, values.data())))
                    faults[at] = Fault::not_finite;
                else if (store_narrowed(columns, type, values.data(), bytes.data() + at * size) < columns)
                    faults[at] = Fault::too_large;
            }
        });
        for (std::int64_t i = 0; i < count; i++) {
            const Fault fault = faults[static_cast<std::size_t>(i)];
            if (fault == Fault::too_large) refuse_narrowed(path, t.name, begin + i, type);
            if (fault == Fault::not_finite)
                fail_input(path, "tensor " + quoted(t.name) + ", row " + std::to_string(begin + i),
                           "finite weights with the adapter's change", "one that is not");
        }
        sink(bytes.data(), bytes.size());
    }
}

}  // namespace

void merge_adapters(const Model& base, const std::vector<Adapter>& adapters, std::optional<DType> type,
                    const std::string& path, Existing existing, int threads) {
    auto changes_of = [&](std::string_view name) {
        std::vector<Change> changes;
        for (const Adapter& adapter : adapters)
            for (std::size_t i = 0; i < adapter.shape.targets.size(); i++) {
                const AdapterTarget& target = adapter.shape.targets[i];
                if (target.tensor == name)
                    changes.push_back({target.scale, target.rank, place_of_tensor(base, target).rows,
                                       adapter.pairs[i].a.as<float>(), adapter.pairs[i].b.as<float>()});
            }
        return changes;
    };
    for (const GgufTensor& t : base.file()->tensors())
        if (!type && info(t.type).block > 1 && !changes_of(t.name).empty())
            fail_input(base.path(), std::string(t.name), "f32, f16 or bf16", std::string(info(t.type).name),
                       "--type f16 unpacks what the adapter changes; generate --lora needs no merging");
    std::string chat_template = choose_template(carried_templates(base, adapters)).source;
    if (base.file()->string(chat_template_key) == chat_template) chat_template.clear();  // stays in its place
    rewrite_model(
        *base.file(), path, {},
        [&](const GgufTensor& t) -> std::optional<NewTensor> {
            std::vector<Change> changes = changes_of(t.name);
            if (changes.empty()) return std::nullopt;
            const DType to = type.value_or(t.type);
            return NewTensor{to, [&, to, changes = std::move(changes)](const GgufWriter::Sink& sink) {
                                 emit_changed(base.file()->path_of(t), t, to, changes, threads, sink);
                             }};
        },
        false, existing, chat_template);
}

}  // namespace linnet
