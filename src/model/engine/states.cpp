#include "model/engine/states.h"

#include <algorithm>
#include <cstring>

#include "kernels/kernels.h"

namespace linnet {
namespace {

constexpr DType types[] = {DType::f16, DType::q8_0, DType::f32};
constexpr std::size_t most_snapshots = 16;  // per sequence; beyond that the older ones become sparser

}  // namespace

std::span<const DType> state_types() {
    return types;
}

namespace {

/// Rows of a state with a row per position: a whole number of blocks where it goes round.
std::int64_t rows_of(const StateSpec& spec, const StateRoom& room) {
    if (spec.window == 0) return room.positions;
    const std::int64_t block = kernels().attention_ring, run = room.run > 0 ? room.run : room.positions;
    const std::int64_t ring = (spec.window + run + block - 1) / block * block;
    return std::min(ring, room.positions);
}

}  // namespace

States::States(const Graph& graph, const StateRoom& room)
    : specs_(graph.states()),
      snapshots_(static_cast<std::size_t>(room.slots)),
      furthest_(static_cast<std::size_t>(room.slots), 0) {
    for (const StateSpec& spec : specs_) {
        bool whole = spec.rewind == Rewind::snapshot;
        StateView view;
        view.type = whole ? DType::f32 : room.rows;
        view.positions = whole ? 1 : rows_of(spec, room);
        const DTypeInfo& is = info(view.type);
        view.row_bytes = (spec.width + is.block - 1) / is.block * is.bytes;
        view.slot_bytes = static_cast<std::size_t>(spec.planes * view.positions * view.row_bytes);
        memory_.push_back(allocate_arena(view.slot_bytes * static_cast<std::size_t>(room.slots),
                                         "keys, values and states of past tokens"));
        view.data = static_cast<std::byte*>(memory_.back().get());
        views_.push_back(view);
        if (whole) snapshot_bytes_ += view.slot_bytes;
    }
}

void States::clear(std::int32_t slot) {
    snapshots_[static_cast<std::size_t>(slot)].clear();
    furthest_[static_cast<std::size_t>(slot)] = 0;
    for (std::size_t i = 0; i < specs_.size(); i++)  // what is truncated is overwritten before it is read
        if (specs_[i].rewind == Rewind::snapshot)
            std::memset(views_[i].slot<std::byte>(slot), 0, views_[i].slot_bytes);
}

std::vector<std::span<std::byte>> States::pieces(std::int32_t slot, std::int64_t positions,
                                                 bool source) const {
    std::vector<std::span<std::byte>> all;
    for (std::size_t i = 0; i < specs_.size(); i++) {
        if (specs_[i].source && !source) continue;
        const StateView& view = views_[i];
        bool whole = specs_[i].rewind == Rewind::snapshot;
        std::size_t row = static_cast<std::size_t>(view.row_bytes);
        std::size_t plane = row * static_cast<std::size_t>(view.positions);
        const std::int64_t held = specs_[i].source ? view.positions : std::min(positions, view.positions);
        std::size_t used = row * static_cast<std::size_t>(whole ? 1 : held);
        for (std::int64_t p = 0; p < specs_[i].planes; p++)
            all.emplace_back(view.slot<std::byte>(slot) + plane * static_cast<std::size_t>(p), used);
    }
    return all;
}

std::string States::layout() const {
    std::string text;
    for (std::size_t i = 0; i < specs_.size(); i++) {
        const StateSpec& spec = specs_[i];
        text += spec.name + " " + std::to_string(spec.planes) + "x" + std::to_string(spec.width) + " " +
                std::string(info(views_[i].type).name);
        if (spec.rewind == Rewind::snapshot) text += " whole";
        text += "\n";
    }
    return text;
}

void States::copy(std::int32_t from, std::int32_t to, std::int64_t positions, bool source) {
    const std::vector<std::span<std::byte>> old = pieces(from, positions, source),
                                            target = pieces(to, positions, source);
    for (std::size_t i = 0; i < old.size(); i++) std::memcpy(target[i].data(), old[i].data(), old[i].size());
    snapshots_[static_cast<std::size_t>(to)] = snapshots_[static_cast<std::size_t>(from)];
    furthest_[static_cast<std::size_t>(to)] = furthest_[static_cast<std::size_t>(from)];
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

void States::remember(std::int32_t slot, std::int64_t position, std::int64_t length) {
    std::int64_t& furthest = furthest_[static_cast<std::size_t>(slot)];
    furthest = std::max(furthest, position + length);
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

/// Whether no position that `position` looks back at has been written over.
bool States::intact(std::int32_t slot, std::int64_t position) const {
    const std::int64_t furthest = furthest_[static_cast<std::size_t>(slot)];
    for (std::size_t i = 0; i < specs_.size(); i++) {
        if (specs_[i].window == 0) continue;
        const std::int64_t oldest = std::max<std::int64_t>(0, position - specs_[i].window + 1);
        if (oldest + views_[i].positions < furthest) return false;
    }
    return true;
}

std::int64_t States::rewind(std::int32_t slot, std::int64_t position, std::int64_t wanted) {
    if (wanted >= position) return position;
    std::vector<Snapshot>& all = snapshots_[static_cast<std::size_t>(slot)];
    if (snapshot_bytes_ > 0) {
        while (!all.empty() && all.back().position > wanted) all.pop_back();
        wanted = all.empty() ? 0 : all.back().position;
    }
    if (wanted == 0 || !intact(slot, wanted)) {
        clear(slot);
        return 0;
    }
    if (snapshot_bytes_ > 0) restore(slot, all.back());
    return wanted;
}

}  // namespace linnet
