#include "model/states.h"

#include <algorithm>
#include <cstring>

namespace linnet {
namespace {

constexpr DType types[] = {DType::f16, DType::q8_0, DType::f32};
constexpr std::size_t most_snapshots = 16;  // per sequence; beyond that the older ones become sparser

}  // namespace

std::span<const DType> state_types() {
    return types;
}

States::States(const Graph& graph, std::int64_t positions, std::int64_t slots, DType rows)
    : specs_(graph.states()), snapshots_(static_cast<std::size_t>(slots)) {
    for (const StateSpec& spec : specs_) {
        bool whole = spec.rewind == Rewind::snapshot;
        StateView view;
        view.type = whole ? DType::f32 : rows;
        view.positions = whole ? 1 : positions;
        const DTypeInfo& is = info(view.type);
        view.row_bytes = (spec.width + is.block - 1) / is.block * is.bytes;
        view.slot_bytes = static_cast<std::size_t>(spec.planes * view.positions * view.row_bytes);
        memory_.push_back(allocate_arena(view.slot_bytes * static_cast<std::size_t>(slots)));
        view.data = static_cast<std::byte*>(memory_.back().get());
        views_.push_back(view);
        if (whole) snapshot_bytes_ += view.slot_bytes;
    }
}

void States::clear(std::int32_t slot) {
    snapshots_[static_cast<std::size_t>(slot)].clear();
    for (std::size_t i = 0; i < specs_.size(); i++)  // what is truncated is overwritten before it is read
        if (specs_[i].rewind == Rewind::snapshot)
            std::memset(views_[i].slot<std::byte>(slot), 0, views_[i].slot_bytes);
}

void States::copy(std::int32_t from, std::int32_t to, std::int64_t positions) {
    for (std::size_t i = 0; i < specs_.size(); i++) {
        const StateView& view = views_[i];
        bool whole = specs_[i].rewind == Rewind::snapshot;
        std::size_t row = static_cast<std::size_t>(view.row_bytes);
        std::size_t plane = row * static_cast<std::size_t>(view.positions);
        std::size_t used = row * static_cast<std::size_t>(whole ? 1 : positions);
        for (std::int64_t p = 0; p < specs_[i].planes; p++) {
            std::size_t at = plane * static_cast<std::size_t>(p);
            std::memcpy(view.slot<std::byte>(to) + at, view.slot<std::byte>(from) + at, used);
        }
    }
    snapshots_[static_cast<std::size_t>(to)] = snapshots_[static_cast<std::size_t>(from)];
}

States::Snapshot States::snapshot(std::int32_t slot, std::int64_t position) const {
    Snapshot copy{position, {}};
    copy.bytes.reserve(snapshot_bytes_);
    for (std::size_t i = 0; i < specs_.size(); i++) {
        if (specs_[i].rewind != Rewind::snapshot) continue;
        const auto* from = views_[i].slot<std::byte>(slot);
        copy.bytes.insert(copy.bytes.end(), from, from + views_[i].slot_bytes);
    }
    return copy;
}

void States::restore(std::int32_t slot, const Snapshot& snapshot) {
    const std::byte* from = snapshot.bytes.data();
    for (std::size_t i = 0; i < specs_.size(); i++) {
        if (specs_[i].rewind != Rewind::snapshot) continue;
        std::memcpy(views_[i].slot<std::byte>(slot), from, views_[i].slot_bytes);
        from += views_[i].slot_bytes;
    }
}

void States::remember(std::int32_t slot, std::int64_t position) {
    std::vector<Snapshot>& all = snapshots_[static_cast<std::size_t>(slot)];
    if (snapshot_bytes_ == 0 || position == 0 || (!all.empty() && all.back().position == position)) return;
    all.push_back(snapshot(slot, position));
    if (all.size() <= most_snapshots) return;
    std::size_t closest = 1;  // the one whose neighbours lie nearest to each other, newer ones counting more
    for (std::size_t i = 1; i + 1 < all.size(); i++) {
        auto gap = [&](std::size_t k) {
            return static_cast<double>(all[k + 1].position - all[k - 1].position) /
                   static_cast<double>(position + 1 - all[k].position);
        };
        if (gap(i) < gap(closest)) closest = i;
    }
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(closest));
}

std::int64_t States::rewind(std::int32_t slot, std::int64_t position, std::int64_t wanted) {
    if (wanted >= position) return position;
    if (snapshot_bytes_ == 0) return wanted;
    std::vector<Snapshot>& all = snapshots_[static_cast<std::size_t>(slot)];
    while (!all.empty() && all.back().position > wanted) all.pop_back();
    if (all.empty()) {
        clear(slot);
        return 0;
    }
    restore(slot, all.back());
    return all.back().position;
}

}  // namespace linnet
