// Checkpoints without names: a header of integers, then every parameter in a fixed order (llama2.c, llm.c).
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "model/convert/source.h"

namespace linnet {

/// The first integer of a checkpoint: llama2.c's "ak42" (version 0 has none), and llm.c's.
inline constexpr std::int32_t llama2c_magic = 0x616b3432, llmc_magic = 20240326;

/// Parameters that stand together; where a name has "{layer}", the group is there for each layer in turn.
using RawGroup = std::vector<std::string_view>;

/// One parameter's place. With `group`, 8-bit numbers and behind them a float scale for each `group` of them.
struct RawPlace {
    std::size_t parameter;
    std::uint64_t begin;  // byte of the file
    DType type;
    std::int64_t group = 0;
    std::uint64_t bytes(std::int64_t elements) const;
};

/// Indices of the graph's parameters in the order of the groups; those that the model lacks are left out.
std::vector<std::size_t> raw_order(const Graph& graph, std::span<const RawGroup> groups, std::int64_t layers);

/// The rows of parameters at their places, under GGUF's names.
void add_raw_tensors(ModelSource& source, std::shared_ptr<const MappedFile> file, const ModelConfig& config,
                     const Graph& graph, std::span<const RawPlace> places, const OpenOptions& options);

/// The vocabulary in `options.tokenizer`, of as many tokens as the checkpoint at `path` has.
/// Error(Exit::input).
void add_tokenizer(ModelSource& source, const OpenOptions& options, std::int64_t tokens,
                   const std::string& path);

/// Before a graph is traced for a header that may say anything: Error(Exit::input) where the file is too
/// short for its table of tokens and one matrix in each layer, with so many bytes for each number.
void require_matrices(const MappedFile& file, const ModelConfig& config, std::uint64_t bytes);

/// Error(Exit::input) for a header's number, named by `names`, that is not from 1 to 2^24, and for more
/// "layers" than a model may have. `program`: that writes such checkpoints.
void check_sizes(const MappedFile& file, std::span<const std::int32_t> sizes,
                 std::span<const char* const> names, const std::string& program);

/// The i-th of the 32-bit integers that a file begins with; Error(Exit::input) where it ends before.
std::int32_t raw_integer(const MappedFile& file, std::size_t i);

}  // namespace linnet
