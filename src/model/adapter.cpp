#include "model/adapter.h"

#include <stdexcept>
#include <utility>

namespace linnet {
namespace {

ParameterId find(const Graph& graph, const std::string& name, std::int32_t adapter) {
    const auto& all = graph.parameters();
    for (std::size_t i = 0; i < all.size(); i++)
        if (all[i].adapter == adapter && all[i].name == name) return static_cast<ParameterId>(i);
    throw std::logic_error("a graph without the adapter's parameter " + name);
}

}  // namespace

void bind_adapters(const Graph& graph, const std::vector<Adapter>& adapters,
                   std::vector<Tensor>& parameters) {
    for (std::size_t n = 0; n < adapters.size(); n++) {
        const auto number = static_cast<std::int32_t>(n);
        const Adapter& adapter = adapters[n];
        for (std::size_t t = 0; t < adapter.shape.targets.size(); t++) {
            const AdapterTarget& target = adapter.shape.targets[t];
            auto put = [&](ParameterId id, float* data) {
                const auto at = static_cast<std::size_t>(id);
                parameters[at] = {data, DType::f32, graph.parameters()[at].shape};
                return parameters[at].shape.count();
            };
            put(find(graph, target.tensor + lora_a, number), adapter.pairs[t].a.as<float>());
            auto* b = adapter.pairs[t].b.as<float>();
            for (const std::string& part : target.parameters) b += put(find(graph, part + lora_b, number), b);
        }
    }
}

std::vector<CarriedTemplate> carried_templates(const Model& base, const std::vector<Adapter>& adapters) {
    std::vector<CarriedTemplate> all;
    for (std::size_t i = adapters.size(); i-- > 0;) all.push_back(adapters[i].chat_template);
    for (CarriedTemplate& own : base.carried_templates()) all.push_back(std::move(own));
    return all;
}

std::vector<AdapterPair> pairs_of(const Graph& graph, const AdapterShape& shape, std::int32_t number,
                                  const std::vector<Tensor>& parameters,
                                  std::vector<std::vector<float>>& joined) {
    std::vector<AdapterPair> pairs;
    auto tensor = [&](const std::string& name) {
        const auto at = static_cast<std::size_t>(find(graph, name, number));
        return Tensor{parameters[at].data, DType::f32, graph.parameters()[at].stored()};
    };
    for (const AdapterTarget& target : shape.targets) {
        AdapterPair pair{tensor(target.tensor + lora_a), tensor(target.parameters[0] + lora_b)};
        if (target.parameters.size() > 1) {
            std::vector<float>& all = joined.emplace_back();
            for (const std::string& part : target.parameters) {
                const Tensor b = tensor(part + lora_b);
                all.insert(all.end(), b.as<float>(), b.as<float>() + b.shape.count());
            }
            pair.b = {all.data(), DType::f32,
                      Shape(static_cast<std::int64_t>(all.size()) / target.rank, target.rank)};
        }
        pairs.push_back(pair);
    }
    return pairs;
}

}  // namespace linnet
