// Adapters on their way into a model's graph.
#pragma once
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "model/trace/trace.h"

namespace linnet {

class AdapterTracer {
  public:
    explicit AdapterTracer(std::span<const AdapterShape> adapters);

    /// `product`, a node that multiplies with `weight`, and what adapters add to it.
    NodeId add(Graph& graph, ParameterId weight, NodeId product, bool training);

  private:
    struct Use {
        std::size_t adapter, target;
    };
    NodeId down(Graph& graph, Use use, const Node& product, bool training);
    NodeId thin(Graph& graph, const Node& product, std::string path, NodeId x, ParameterId matrix) const;

    std::span<const AdapterShape> adapters_;
    std::multimap<std::string, Use> uses_;                                 // by parameter
    std::map<std::tuple<std::size_t, std::size_t, NodeId>, NodeId> down_;  // A x, by x
};

}  // namespace linnet
