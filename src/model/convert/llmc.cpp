// llm.c's checkpoints of GPT-2 (karpathy/llm.c, train_gpt2.py, write_model): a header of 256 integers, then
// every parameter, for all layers in turn. Version 3 is of f32, version 5 of bf16.
#include <array>
#include <filesystem>

#include "base/error.h"
#include "model/architectures.h"
#include "model/convert/outgoing.h"
#include "model/convert/raw_model.h"
#include "model/convert/sinks.h"
#include "model/huggingface/config.h"
#include "model/trace/trace.h"

namespace linnet {
namespace {

constexpr std::uint64_t header_bytes = 1024;
constexpr std::int64_t vocabulary_unit = 128;  // llm.c pads the vocabulary to such

const std::vector<RawGroup> order = {
    {"token_embd.weight"},
    {"position_embd.weight"},
    {"blk.{layer}.attn_norm.weight"},
    {"blk.{layer}.attn_norm.bias"},
    {"blk.{layer}.attn_q.weight", "blk.{layer}.attn_k.weight", "blk.{layer}.attn_v.weight"},
    {"blk.{layer}.attn_q.bias", "blk.{layer}.attn_k.bias", "blk.{layer}.attn_v.bias"},
    {"blk.{layer}.attn_output.weight"},
    {"blk.{layer}.attn_output.bias"},
    {"blk.{layer}.ffn_norm.weight"},
    {"blk.{layer}.ffn_norm.bias"},
    {"blk.{layer}.ffn_up.weight"},
    {"blk.{layer}.ffn_up.bias"},
    {"blk.{layer}.ffn_down.weight"},
    {"blk.{layer}.ffn_down.bias"},
    {"output_norm.weight"},
    {"output_norm.bias"},
};

ModelConfig config_of(std::int64_t context, std::int64_t vocabulary, std::int64_t layers, std::int64_t heads,
                      std::int64_t width) {
    ModelConfig c;
    c.context = context, c.vocabulary = vocabulary, c.layers = layers, c.heads = heads, c.width = width;
    return c;
}

}  // namespace

ModelSource open_llmc(const std::string& path, const OpenOptions& options) {
    ModelSource source;
    source.path = path;
    auto file = std::make_shared<const MappedFile>(path);
    const std::int32_t version = raw_integer(*file, 1);
    if (version != 3 && version != 5)
        fail_input(path, "version", "3 (f32) or 5 (bf16)", std::to_string(version));
    const DType type = version == 3 ? DType::f32 : DType::bf16;
    constexpr const char* names[] = {"context", "vocabulary", "layers",
                                     "heads",   "width",      "padded vocabulary"};
    std::array<std::int32_t, 6> n;
    for (std::size_t i = 0; i < n.size(); i++) n[i] = raw_integer(*file, i + 2);
    check_sizes(*file, n, names, "llm.c");
    if (n[5] < n[1]) fail_input(path, names[5], "at least " + std::to_string(n[1]), std::to_string(n[5]));
    ModelConfig config = config_of(n[0], n[1], n[2], n[3], n[4]);
    resolve(config, path);
    require_matrices(*file, config, static_cast<std::uint64_t>(info(type).bytes));
    const Graph graph = trace(config, false).graph;
    std::vector<RawPlace> places;
    std::uint64_t at = header_bytes;
    for (std::size_t p : raw_order(graph, order, config.layers)) {
        RawPlace place{p, at, type};
        at += place.bytes(graph.parameters()[p].shape.count());
        if (graph.parameters()[p].name == "token_embd.weight")
            at += place.bytes((n[5] - n[1]) * config.width);
        places.push_back(place);
    }
    if (at != file->bytes().size())
        fail_input(path, "", std::to_string(at) + " bytes, as the header says",
                   std::to_string(file->bytes().size()), "is the file truncated?");
    OpenOptions with = options;
    if (with.tokenizer.empty()) {
        const std::string folder = std::filesystem::path(path).parent_path().string();
        with.tokenizer = tokenizer_in(folder.empty() ? "." : folder);
    }
    if (with.tokenizer.empty())
        fail_input(
            path, "", "tokenizer.gguf, tokenizer.json or tokenizer.model beside it", "none",
            "llm.c's files have no vocabulary; `linnet convert --tokenizer FILE` makes a GGUF of both");
    write_config(source.metadata, architecture_of(config), config);
    source.metadata.add("general.name", "llm.c");
    add_tokenizer(source, with, config.vocabulary, path);
    add_raw_tensors(source, file, config, graph, places, options);
    return source;
}

void write_llmc(const OutgoingModel& model, const std::string& path, const SinkOptions& options) {
    const Gguf& file = model.file();
    const Architecture* architecture = nullptr;
    const ModelConfig c = read_config(file, architecture);
    ModelConfig known = config_of(c.context, c.vocabulary, c.layers, c.heads.at(0), c.width);
    resolve(known, file.path());
    if (!same_settings(c, known))
        fail_input(file.path(), "",
                   "a GPT-2 with tied embeddings, an epsilon of 1e-5 and 4 times the width inside",
                   "another model (" + architecture->name + ")");
    const DType type = options.type.value_or(
        file.tensor("token_embd.weight")->type == DType::bf16 ? DType::bf16 : DType::f32);
    if (type == DType::f16) fail_input(path, "--type", "f32 or bf16, which llm.c has", "f16");
    const Graph graph = trace(c, false).graph;
    std::vector<std::vector<float>> converted;
    const std::vector<ParameterValues> parameters = model.parameters(graph, *architecture, converted);
    const std::int64_t padded = (c.vocabulary + vocabulary_unit - 1) / vocabulary_unit * vocabulary_unit;
    AtomicFile out(path, options.existing);
    std::array<std::int32_t, header_bytes / 4> header{};
    std::size_t i = 0;
    for (std::int64_t n : {std::int64_t{llmc_magic}, std::int64_t{type == DType::f32 ? 3 : 5}, c.context,
                           c.vocabulary, c.layers, c.heads.at(0), c.width, padded})
        header[i++] = static_cast<std::int32_t>(n);
    out.write(header.data(), header_bytes);
    double done = 0, all = 0;
    for (const ParameterValues& t : parameters)
        all += static_cast<double>(t.shape.count() * info(type).bytes);
    for (std::size_t p : raw_order(graph, order, c.layers)) {
        const ParameterValues& t = parameters[p];
        options.mapped(graph.parameters()[p].name + " -> byte " + std::to_string(out.position()));
        write_values(t, type, [&](const void* data, std::size_t size) {
            out.write(data, size);
            done += static_cast<double>(size);
            options.progress(done, all);
        });
        if (graph.parameters()[p].name == "token_embd.weight") {
            const std::vector<std::byte> zeros(
                static_cast<std::size_t>((padded - c.vocabulary) * c.width * info(type).bytes));
            out.write(zeros.data(), zeros.size());
        }
    }
    out.commit();
}

}  // namespace linnet
