// What an optimizer keeps of a model's parameters, and its step.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/team.h"
#include "graph/graph.h"
#include "train/optimize/groups.h"
#include "train/optimize/optimizers.h"
#include "train/optimize/orthogonal.h"
#include "train/optimize/schedule.h"

namespace linnet {

/// One optimizer step.
struct StepOptions {
    std::int64_t step = 1;                                        // from 1
    RateSpan span;                                                // its peak is each group's own lr
    double clip = 0;                                              // global gradient norm; 0: none
    double skip_above = std::numeric_limits<double>::infinity();  // a larger norm leaves everything as it was
    bool watch = false;                                           // fill StepResult::blocks
};

/// Of a block, or of parameters outside of blocks that are alike.
struct BlockStep {
    std::string name;                             // "blk.3", "token_embd"
    double gradient = 0, update = 0, weight = 0;  // 2-norms, before clipping; of what was added; before that
};

struct StepResult {
    double norm = 0;  // of all gradients before clipping
    bool applied = false;
    std::vector<BlockStep> blocks;
};

/// The elements that n of a parameter take in every array of all parameters, so that each begins at a line of
/// the cache.
constexpr std::int64_t padded(std::int64_t n) {
    return (n + 15) / 16 * 16;
}

class Optimizer {
  public:
    /// The parameters lie in the graph's order, each begins at a multiple of 16 elements. Error(Exit::input)
    /// for a group whose pattern matches none. `rates`: of each parameter, times its group's; 0: it is not
    /// trained, and has no place. Empty: 1 for all. `products`: those that make a matrix orthogonal.
    Optimizer(const Graph& graph, const std::vector<ParameterGroup>& groups, int threads,
              const std::vector<double>& rates = {}, ProductKernel products = ProductKernel::panels);

    /// Steps on the gradients, which are then zero. Where their norm is not finite or above skip_above
    /// nothing else was changed. The same bits for any number of threads.
    StepResult step(const std::vector<ParameterGroup>& groups, const StepOptions& options, float* values,
                    float* gradients);

    /// What is kept from step to step, for checkpoints: first moments of the parameters that have one, in the
    /// graph's order, then second ones. Each parameter is padded to 16 elements.
    float* state() { return static_cast<float*>(state_.get()); }
    std::int64_t state_elements() const { return state_elements_; }

    /// Bytes of that.
    static std::size_t state_bytes(const Graph& graph, const std::vector<ParameterGroup>& groups,
                                   const std::vector<double>& rates = {});
    /// Bytes that an Optimizer of this takes.
    static std::size_t bytes(const Graph& graph, const std::vector<ParameterGroup>& groups, int threads,
                             const std::vector<double>& rates = {},
                             ProductKernel products = ProductKernel::panels);

  private:
    /// A run of one parameter's elements, small enough to stay in cache between the passes over it.
    struct Chunk {
        std::int64_t begin = 0, size = 0;      // of values and gradients
        std::int64_t first = -1, second = -1;  // of its moments in the state; -1: none
        std::size_t group = 0, block = 0;
        const OptimizerKind* kind = nullptr;
        double rate = 1;  // times the group's
        bool decays = false;
        bool in_matrix = false;                     // of one that is orthogonalised
        double square = 0, update = 0, weight = 0;  // sums of squares, as in BlockStep
    };
    /// One that is orthogonalised: chunks [first, last); by one member alone, or by all together.
    struct Matrix {
        std::int64_t rows, columns;
        std::size_t first, last;
        bool alone;
    };
    struct Running;  // what the parts of a step share

    struct LayoutOnly {};
    Optimizer(const Graph& graph, const std::vector<ParameterGroup>& groups, const std::vector<double>& rates,
              LayoutOnly);
    void add_parameter(const Parameter& parameter, std::int64_t begin, Chunk like, bool orthogonalised);
    std::size_t scratch_bytes(int threads) const {
        return static_cast<std::size_t>(std::max(scratch_shared_, scratch_alone_ * threads)) * sizeof(float);
    }
    void measure(const Running& run, Worker part);
    void step_chunks(Running& run, Worker part);
    void gather_momentum(const Running& run, const Matrix& matrix, float* direction, Worker part);
    void normalise(const Matrix& matrix, float* direction, Worker part);
    void apply(const Running& run, const Matrix& matrix, const float* direction, Worker part);
    Orthogonaliser orthogonaliser(const Matrix& matrix, float* direction) const;
    void step_alone(const Running& run, const Matrix& matrix, int member);
    bool step_together(const Running& run, const Matrix& matrix, StageWalker& walker);
    Update<float> update_for(const Running& run, const Chunk& chunk) const;
    void take(const Running& run, Chunk& chunk, const Update<float>& update, const float* gradient, float* m,
              float* v);
    std::vector<BlockStep> block_steps() const;
    float* at(std::int64_t element) { return element < 0 ? nullptr : state() + element; }
    float* scratch() const { return static_cast<float*>(scratch_.get()); }
    void* workspace(int member) const {
        return static_cast<std::byte*>(workspaces_.get()) +
               workspace_bytes_ * static_cast<std::size_t>(member);
    }

    int threads_ = 1;
    ProductKernel products_ = ProductKernel::panels;
    std::vector<Chunk> chunks_;
    std::vector<Matrix> matrices_;
    std::vector<double> direction_squares_;  // of each chunk
    std::vector<std::string> block_names_;
    std::int64_t state_elements_ = 0;
    std::int64_t scratch_shared_ = 0, scratch_alone_ = 0;  // floats: of all members, of each
    std::size_t workspace_bytes_ = 0;                      // of each member
    Arena state_, scratch_, workspaces_;
};

}  // namespace linnet
