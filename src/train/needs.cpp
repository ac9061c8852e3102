#include "train/needs.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <utility>
#include <vector>

#include "base/memory_use.h"
#include "model/trace/trace.h"
#include "train/step/learner.h"

namespace linnet {
namespace {

/// Pages [first, second) of the address space.
using Pages = std::pair<std::uint64_t, std::uint64_t>;

/// How many of `pages`, whole ones of which some stand in several ranges, are not in memory for this process:
/// those of a mapped file that it has not read. All, where the system does not say (all but Linux).
std::uint64_t absent(std::vector<Pages> pages) {
    std::ranges::sort(pages);
    std::ifstream table;
    table.rdbuf()->pubsetbuf(nullptr,
                             0);  // Linux refuses to read part of an entry, as a buffer would ask for
    table.open("/proc/self/pagemap", std::ios::binary);
    std::vector<std::uint64_t> entries;  // the kernel's, one a page; its highest bit: present
    std::uint64_t count = 0, counted = 0;
    for (auto [begin, end] : pages) {
        begin = std::max(begin, counted);
        if (begin >= end) continue;
        counted = end;
        entries.assign(end - begin, 0);
        const std::size_t entry = sizeof entries[0];
        table.clear(), table.seekg(static_cast<std::streamoff>(begin * entry));
        table.read(reinterpret_cast<char*>(entries.data()),
                   static_cast<std::streamsize>(entries.size() * entry));
        count += static_cast<std::uint64_t>(
            std::ranges::count_if(entries, [](std::uint64_t bits) { return bits >> 63 == 0; }));
    }
    return count;
}

/// What a run from a model still has to read of the file that is mapped: all that its plan, or the first
/// copy of what is trained, will.
std::size_t unread_weights(const LearnerStart& start) {
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    std::vector<Pages> pages;
    for (const ParameterStart& parameter : start.own) {
        const Tensor& stored = parameter.stored;
        if (!stored.data) continue;
        const auto begin = reinterpret_cast<std::uintptr_t>(stored.data);
        const auto size = static_cast<std::uint64_t>(stored_bytes(stored.type, stored.shape.count()));
        pages.emplace_back(begin / page, (begin + size + page - 1) / page);
    }
    return absent(std::move(pages)) * page;
}

/// Micro-batches that stand at once: what is learned and, where that is, the one that is prepared.
std::size_t batch_bytes(const RunSetup& setup, const RunConfig& config) {
    constexpr std::int64_t integers = 6;  // about: id, position, segment, target and the like
    const auto& image = config.model.image;
    const std::int64_t width = image.patch * image.patch * image.channels;
    const std::int64_t row =
        integers * std::int64_t{sizeof(std::int32_t)} + width * std::int64_t{sizeof(float)};
    const std::int64_t rows = config.train.batch * config.train.sequence;
    return static_cast<std::size_t>(rows * row) * (setup.prepares_ahead() ? 2 : 1);
}

}  // namespace

std::size_t memory_with_learner(const RunSetup& setup, const RunConfig& config) {
    return current_memory() + unread_weights(setup.start.learner) + batch_bytes(setup, config) +
           Learner::bytes(config.model, config.train.batch * config.train.sequence, setup.threads,
                          groups_of(config.train), setup.start.learner, numbers_of(config));
}

std::size_t peak_memory_of_run(const RunSetup& setup, const RunConfig& config) {
    // Measured: code and stacks that steps touch, 2 to 6 MiB, and what writes samples, as much.
    const bool samples = config.train.sample_tokens > 0 && config.model.has_decoder();
    const std::size_t beside = (samples ? std::size_t{6} : 3) << 20;
    return std::max(peak_memory(), memory_with_learner(setup, config) + beside);
}

std::size_t disk_of_run(const RunConfig& config) {
    constexpr std::size_t token = 30, step = 170, report = 500'000;  // bytes: of a vocabulary, of the log
    const Graph graph = trace(config.model, false).graph;
    const std::size_t matrices = config.train.weights == "f32" ? 4 : 2;
    const auto parameters = static_cast<std::size_t>(graph.parameter_count());
    const std::size_t vocabulary = token * static_cast<std::size_t>(config.model.vocabulary);
    // The best model, which is often the last one, the one that was the best before, and two checkpoints.
    return 2 * (matrices * parameters + vocabulary) +
           2 * (4 * parameters + vocabulary + Optimizer::state_bytes(graph, groups_of(config.train))) +
           step * static_cast<std::size_t>(config.train.steps) + report;
}

}  // namespace linnet
