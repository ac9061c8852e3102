#include "model/fingerprint.h"

#include <algorithm>

#include "base/sha256.h"
#include "model/trace/trace.h"

namespace linnet {

std::string fingerprint(const Model& model) {
    constexpr std::size_t piece = 1024;
    Sha256 hash;
    ModelConfig config = model.config();
    hash.update(to_json(model_fields(config)).dump());
    for (const AdapterShape& adapter : model.adapters())
        for (const AdapterTarget& target : adapter.targets)
            hash.update(" " + target.tensor + " " + std::to_string(target.scale));
    const std::vector<Tensor>& tensors = model.parameters();
    for (std::size_t i = 0; i < tensors.size(); i++) {
        const Tensor& t = tensors[i];
        const Parameter& parameter = model.traced().graph.parameters()[i];
        hash.update("\n" + parameter.name + " " + std::string(info(t.type).name));
        for (std::int64_t d : t.shape.dim) hash.update(" " + std::to_string(d));
        const auto rows =
            static_cast<std::size_t>(t.shape.rank > 1 ? t.shape.count() / t.shape.columns() : 1);
        const std::size_t size = rows * static_cast<std::size_t>(t.row_bytes());
        if (size <= 3 * piece) {
            hash.update(t.data, size);
            continue;
        }
        for (std::size_t at : {std::size_t{0}, (size - piece) / 2, size - piece})
            hash.update(t.as<std::byte>() + at, piece);
    }
    return hash.hex();
}

}  // namespace linnet
