#include "model/trace/picture_windows.h"

namespace linnet {
namespace {

double number(std::int64_t n) {
    return static_cast<double>(n);
}

}  // namespace

/// Patches in a line or column of the layer being traced, from the picture's pixels.
std::int64_t PictureWindows::grid(std::int64_t pixels) const {
    const ModelConfig& c = parts_.config();
    return (pixels / c.image.patch) >> c.merges_at(parts_.layer());
}

/// The space with so many rows for each of the parent's: made where there is none yet.
SpaceId PictureWindows::space(const char* name, SpaceId parent, std::int64_t parents, std::int64_t sequence) {
    const auto& all = graph().spaces();
    for (std::size_t i = 0; i < all.size(); i++)
        if (all[i].parent == parent && all[i].parents == parents && all[i].sequence == sequence)
            return static_cast<SpaceId>(i);
    return graph().space(
        {.name = name, .parent = parent, .per_parent = 1, .parents = parents, .sequence = sequence});
}

NodeId PictureWindows::merge(const std::string& blk, NodeId x) {
    const auto& image = parts_.config().image;
    const std::int64_t width = grid(image.width), height = grid(image.height);
    return graph().add(merge_op, blk + ".merge.rows", {x}, {},
                       {{"width", number(2 * width)}, {"height", number(2 * height)}},
                       {space("merged", graph().node(x).space, 4, width * height)});
}

NodeId PictureWindows::moved(const std::string& path, NodeId x, SpaceId to, bool back) {
    return graph().add(windows_op, path, {x}, {},
                       {{"width", number(width_)},
                        {"height", number(height_)},
                        {"window", number(side_)},
                        {"shift", number(shift_)},
                        {"back", back ? 1.0 : 0.0}},
                       {to});
}

NodeId PictureWindows::begin(const std::string& blk, NodeId x) {
    const ModelConfig& c = parts_.config();
    const std::int64_t layer = parts_.layer(), heads = c.heads.at(layer);
    width_ = grid(c.image.width), height_ = grid(c.image.height), side_ = c.image.window;
    shift_ = side_ == width_ && side_ == height_ ? 0 : c.image.shift.at(layer);
    const std::int64_t places = side_ * side_, distances = (2 * side_ - 1) * (2 * side_ - 1);
    keys_ = (places + score_bias_lanes - 1) / score_bias_lanes * score_bias_lanes;
    const ParameterId table = parts_.parameter(
        {.name = blk + ".attn_window_b.weight", .shape = {distances, heads}, .init_std = c.init_std});
    bias_ = graph().add(window_bias_op, blk + ".window_bias", {}, {table},
                        {{"window", number(side_)}, {"shift", number(shift_)}, {"bias_keys", number(keys_)}},
                        {graph().space({.name = "heads", .fixed = heads})});
    lines_ = graph().node(x).space;
    return moved(blk + ".windows", x, space("windows", lines_, 1, places), false);
}

NodeId PictureWindows::lines(const std::string& blk, NodeId x) {
    return moved(blk + ".lines", x, lines_, true);
}

void PictureWindows::tell(Attributes& attention) const {
    attention.set("sequence", number(side_ * side_));
    attention.set("bias_keys", number(keys_));
    attention.set("shift", number(shift_));
    attention.set("columns", number(width_ / side_));
    attention.set("lines", number(height_ / side_));
}

}  // namespace linnet
