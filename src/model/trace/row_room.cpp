#include "model/trace/row_room.h"

namespace linnet {

ById<std::int64_t> capacities(const Graph& graph, const RowRoom& room) {
    ById<std::int64_t> rows;
    for (const RowSpace& space : graph.spaces()) {
        const bool follows = space.fixed > 0 || space.parent != none;
        rows.push_back(follows                   ? 0
                       : space.name == "tokens"  ? room.tokens
                       : space.name == "outputs" ? room.outputs
                                                 : room.beside);
    }
    return rows;
}

}  // namespace linnet
