// llama2.c's checkpoints (karpathy/llama2.c, export.py): version 0 without a magic number, 1 with norms
// first, 2 with matrices of 8 bits in groups.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "base/output.h"
#include "base/system.h"
#include "model/architectures.h"
#include "model/convert/outgoing.h"
#include "model/convert/raw_model.h"
#include "model/convert/sinks.h"
#include "model/huggingface/config.h"
#include "model/trace/trace.h"
#include "text/files/llama2c.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t long_header = 256, short_header = 28;
constexpr std::string_view q = "blk.{layer}.attn_q.weight", k = "blk.{layer}.attn_k.weight",
                           v = "blk.{layer}.attn_v.weight", o = "blk.{layer}.attn_output.weight",
                           gate = "blk.{layer}.ffn_gate.weight", down = "blk.{layer}.ffn_down.weight",
                           up = "blk.{layer}.ffn_up.weight", first_norm = "blk.{layer}.attn_norm.weight",
                           second_norm = "blk.{layer}.ffn_norm.weight", table = "token_embd.weight",
                           last_norm = "output_norm.weight", head = "output.weight";
// The turns' cosines and sines stand between the two parts of version 0.
const std::vector<RawGroup> order_0 = {{table},       {first_norm}, {q},    {k},  {v},        {o},
                                       {second_norm}, {gate},       {down}, {up}, {last_norm}};
const std::vector<RawGroup> order_1 = {{first_norm}, {second_norm}, {last_norm}, {table}, {q},  {k},
                                       {v},          {o},           {gate},      {down},  {up}, {head}};

struct Header {
    std::int32_t version = 0, group = 0;
    ModelConfig config;
    std::uint64_t begin = short_header;
};

ModelConfig config_of(std::int64_t width, std::int64_t ffn, std::int64_t layers, std::int64_t heads,
                      std::int64_t kv_heads, std::int64_t vocabulary, std::int64_t context) {
    ModelConfig c;
    c.width = width, c.layers = layers, c.heads = heads, c.kv_heads = kv_heads, c.context = context;
    c.vocabulary = vocabulary;
    c.ffn.width = ffn, c.ffn.activation = "silu", c.ffn.gated = true, c.ffn.bias = false;
    c.norm.kind = "rms";
    c.position.kind = "rope";
    c.attention.bias = false;
    return c;
}

Header header_of(const MappedFile& file) {
    Header h;
    std::size_t at = 0;
    if (raw_integer(file, 0) == llama2c_magic) {
        h.version = raw_integer(file, 1), h.begin = long_header, at = 2;
        if (h.version != 1 && h.version != 2)
            fail_input(file.path(), "version", "0, 1 or 2", std::to_string(h.version));
        if (file.bytes().size() < long_header)
            fail_input(file.path(), "header", "256 bytes", std::to_string(file.bytes().size()),
                       "is the file truncated?");
    }
    std::array<std::int32_t, 7> n;
    for (std::size_t i = 0; i < n.size(); i++) n[i] = raw_integer(file, at + i);
    bool tied = n[5] > 0;
    if (h.version == 0 && n[5] != INT32_MIN) n[5] = std::abs(n[5]);
    if (h.version > 0) {
        tied = std::to_integer<int>(file.bytes()[36]) != 0;
        if (h.version == 2) std::memcpy(&h.group, file.bytes().data() + 37, sizeof h.group);
    }
    constexpr const char* names[] = {
        "width", "feed-forward width", "layers", "heads", "key and value heads", "vocabulary", "context"};
    check_sizes(file, n, names, "llama2.c");
    h.config = config_of(n[0], n[1], n[2], n[3], n[4], n[5], n[6]);
    h.config.tie_embeddings = tied;
    resolve(h.config, file.path());
    if (h.version == 2 && h.group < 1)
        fail_input(file.path(), "group size", "a positive number", std::to_string(h.group));
    return h;
}

/// cos and sin of every position's turns: f32, [context, D/2] each.
std::uint64_t turns(const ModelConfig& c) {
    return static_cast<std::uint64_t>(c.context * c.head_width);
}

std::vector<RawPlace> places_of(const Header& h, const Graph& graph, const MappedFile& file) {
    std::vector<RawPlace> places;
    std::uint64_t at = h.begin;
    auto pass = [&](std::uint64_t bytes) {
        const auto end = checked_add(at, bytes);
        if (!end) fail_input(file.path(), "header", "a model of fewer than 2^64 bytes", "more");
        at = *end;
    };
    auto add = [&](std::span<const RawGroup> groups) {
        for (std::size_t p : raw_order(graph, groups, h.config.layers)) {
            const Shape& shape = graph.parameters()[p].shape;
            RawPlace place{p, at, DType::f32, h.version == 2 && shape.rank > 1 ? h.group : 0};
            if (place.group && shape.count() % place.group != 0)  // groups may span rows
                fail_input(file.path(), "group size", "a divisor of " + std::to_string(shape.count()),
                           std::to_string(place.group));
            pass(place.bytes(shape.count()));
            places.push_back(place);
        }
    };
    if (h.version == 0) {
        add(order_0);
        pass(4 * turns(h.config));
        add(std::vector<RawGroup>{{head}});
    } else {
        add(order_1);
    }
    if (at != file.bytes().size())
        fail_input(file.path(), "", std::to_string(at) + " bytes, as the header says",
                   std::to_string(file.bytes().size()), "is it a checkpoint of llama2.c?");
    return places;
}

/// The largest of export.py's groups (64, halved) that divides the rows of every matrix, as runq.c needs it.
std::int64_t group_of(const ModelConfig& c) {
    std::int64_t group = 64;
    while (c.width % group != 0 || c.ffn.width.at(0) % group != 0) group /= 2;
    return group;
}

/// A checkpoint being written.
class CheckpointWriter {
  public:
    CheckpointWriter(const ModelConfig& c, const Graph& graph, const std::vector<ParameterValues>& parameters,
                     const std::string& path, const SinkOptions& options)
        : c_(c),
          graph_(graph),
          parameters_(parameters),
          options_(options),
          group_(options.version == 2 ? group_of(c) : 0),
          out_(path, options.existing) {
        for (const ParameterValues& t : parameters)
            all_ += static_cast<double>(t.shape.count()) * sizeof(float);
    }

    void write() {
        header();
        if (options_.version > 0) {
            put(order_1);
        } else {
            put(order_0);
            turns();
            put(std::vector<RawGroup>{{head}});
        }
        out_.finish();
    }
    void commit() { out_.commit(); }
    bool has_name() const { return out_.has_name(); }

  private:
    template <class T>
    void number(T value) {
        out_.write(&value, sizeof value);
    }

    void header() {
        const bool old = options_.version == 0;
        if (!old) number(llama2c_magic), number(static_cast<std::int32_t>(options_.version));
        for (std::int64_t n : {c_.width, c_.ffn.width.at(0), c_.layers, c_.heads.at(0), c_.kv_heads.at(0),
                               old && !c_.tie_embeddings ? -c_.vocabulary : c_.vocabulary, c_.context})
            number(static_cast<std::int32_t>(n));
        if (old) return;
        number(static_cast<std::uint8_t>(c_.tie_embeddings));
        if (group_) number(static_cast<std::int32_t>(group_));
        out_.write(std::string(long_header - out_.position(), '\0'));
    }

    void put(std::span<const RawGroup> groups) {
        for (std::size_t p : raw_order(graph_, groups, c_.layers)) {
            const ParameterValues& t = parameters_[p];
            options_.mapped(graph_.parameters()[p].name + " -> byte " + std::to_string(out_.position()));
            std::vector<float> scales;
            write_values(t, DType::f32, [&](const void* data, std::size_t size) {
                if (group_ && t.shape.rank > 1)
                    quantized({static_cast<const float*>(data), size / sizeof(float)}, scales);
                else
                    out_.write(data, size);
                done_ += static_cast<double>(size);
                options_.progress(done_, all_);
            });
            if (!scales.empty()) out_.write(scales.data(), scales.size() * sizeof(float));
        }
    }

    /// Whole groups as numbers from -127 to 127; their scales stand behind the whole matrix.
    void quantized(std::span<const float> values, std::vector<float>& scales) {
        std::vector<std::int8_t> numbers;
        for (std::size_t begin = 0; begin < values.size(); begin += static_cast<std::size_t>(group_)) {
            const auto group = values.subspan(begin, static_cast<std::size_t>(group_));
            float largest = 0;
            for (float value : group) largest = std::max(largest, std::abs(value));
            const float scale = largest / 127;
            for (float value : group) {
                const float x = std::nearbyint(value / scale);  // no number where all are 0
                numbers.push_back(std::isnan(x) ? std::int8_t{0}
                                                : static_cast<std::int8_t>(std::clamp(x, -127.0F, 127.0F)));
            }
            scales.push_back(scale);
        }
        out_.write(numbers.data(), numbers.size());
    }

    /// The turns' cosines and sines, as export.py makes them in single precision.
    void turns() {
        for (auto function :
             {static_cast<float (*)(float)>(std::cos), static_cast<float (*)(float)>(std::sin)})
            for (std::int64_t position = 0; position < c_.context; position++)
                for (std::int64_t i = 0; i < c_.head_width / 2; i++) {
                    const float power = static_cast<float>(2 * i) / static_cast<float>(c_.head_width);
                    const float frequency = 1.0F / std::pow(10000.0F, power);
                    number(function(static_cast<float>(position) * frequency));
                }
    }

    const ModelConfig& c_;
    const Graph& graph_;
    const std::vector<ParameterValues>& parameters_;
    const SinkOptions& options_;
    std::int64_t group_;  // 0: no matrix has 8 bits
    AtomicFile out_;
    double done_ = 0, all_ = 0;
};

/// tokenizer.bin, beside a checkpoint. Where one with the same bytes is there already, that serves.
class WordsWriter {
  public:
    WordsWriter(const std::string& path, const std::string& text, Existing existing) : path_(path) {
        std::error_code ignored;
        if (fs::is_regular_file(path, ignored) && fs::file_size(path, ignored) == text.size() &&
            read_file(path) == text)
            return;
        // A link may lead to the words of other checkpoints, which stay theirs.
        out_.emplace(path, existing == Existing::keep ? existing : Existing::replace_name);
        out_->write(text);
        out_->finish();
    }
    bool differs() const { return out_.has_value(); }
    const std::string& path() const { return path_; }
    void commit() { out_->commit(); }
    bool has_name() const { return out_->has_name(); }

  private:
    std::string path_;
    std::optional<AtomicFile> out_;
};

std::string beside(const std::string& path, const std::string& name) {
    const std::size_t slash = path.rfind('/');
    return (slash == path.npos ? "" : path.substr(0, slash + 1)) + name;
}

/// What a name stands for: of a link, what it leads to.
std::string real_name(const std::string& path) {
    std::error_code ignored;
    const std::string real = fs::weakly_canonical(path, ignored).string();
    return real.empty() ? path : real;
}

/// A file under another name, which comes back unless it is dropped.
class SetAside {
  public:
    explicit SetAside(const std::string& path)
        : path_(path), aside_(beside(path_, ".linnet-old-" + fs::path(path_).filename().string())) {
        if (!name_taken(path_)) return;
        if (int error = rename_file(path_, aside_)) fail_errno(path, "", error);
        is_there_ = true;
    }
    ~SetAside() {
        if (is_there_) rename_file(aside_, path_);
    }
    SetAside(const SetAside&) = delete;
    void drop() {
        if (is_there_) remove_all(aside_);
        is_there_ = false;
    }

  private:
    std::string path_, aside_;
    bool is_there_ = false;
};

/// Gives a checkpoint and its tokenizer their names; where one of them cannot have it, both are as before.
void commit(CheckpointWriter& checkpoint, WordsWriter& words, const std::string& path, Existing existing) {
    refuse_existing(path, existing);
    if (!words.differs()) return checkpoint.commit();
    std::optional<SetAside> old_checkpoint, old_words;
    if (existing != Existing::keep) {
        // Ids mean nothing with other words: an old checkpoint goes before its tokenizer does.
        old_checkpoint.emplace(real_name(path));
        old_words.emplace(words.path());
    }
    auto drop = [&] {
        if (old_words) old_words->drop();
        if (old_checkpoint) old_checkpoint->drop();
    };
    try {
        words.commit();
        checkpoint.commit();
    } catch (...) {
        if (checkpoint.has_name())
            drop();  // both stand, only the folder could not be flushed
        else if (words.has_name())
            remove_all(words.path());
        throw;
    }
    drop();
}

}  // namespace

ModelSource open_llama2c(const std::string& path, const OpenOptions& options) {
    ModelSource source;
    source.path = path;
    auto file = std::make_shared<const MappedFile>(path);
    const Header h = header_of(*file);
    require_matrices(*file, h.config, h.version == 2 ? 1 : 4);
    const Graph graph = trace(h.config, false).graph;
    const std::vector<RawPlace> places = places_of(h, graph, *file);
    write_config(source.metadata, architecture_of(h.config), h.config);
    source.metadata.add("general.name", "llama2.c");
    if (options.tokenizer.empty()) {
        const std::string tokenizer = beside(path, "tokenizer.bin");
        const MappedFile bytes(tokenizer);
        tokenizer_from_llama2c(bytes.text(), tokenizer, static_cast<TokenId>(h.config.vocabulary))
            ->write(source.metadata);
    } else {
        add_tokenizer(source, options, h.config.vocabulary, path);
    }
    add_raw_tensors(source, file, h.config, graph, places, options);
    return source;
}

void write_llama2c(const OutgoingModel& model, const TokenizerPtr& tokenizer, const std::string& path,
                   const SinkOptions& options) {
    const Gguf& file = model.file();
    const Architecture* architecture = nullptr;
    const ModelConfig c = read_config(file, architecture);
    ModelConfig known = config_of(c.width, c.ffn.width.at(0), c.layers, c.heads.at(0), c.kv_heads.at(0),
                                  c.vocabulary, c.context);
    known.tie_embeddings = c.tie_embeddings;
    resolve(known, file.path());
    if (!same_settings(c, known))
        fail_input(file.path(), "",
                   "a LLaMA that llama2.c can run: no biases, no scaled positions, an epsilon of 1e-5",
                   "another model (" + architecture->name + ")");
    if (options.type.value_or(DType::f32) != DType::f32)
        fail_input(path, "--type", "f32, which llama2.c has", std::string(info(*options.type).name));
    const Graph graph = trace(c, false).graph;
    std::vector<std::vector<float>> converted;
    const std::vector<ParameterValues> parameters = model.parameters(graph, *architecture, converted);
    const std::string beside_it = beside(path, "tokenizer.bin");
    if (real_name(path) == real_name(beside_it))
        fail(Exit::usage, path, "", "another name than tokenizer.bin's, which holds the vocabulary", "that");
    CheckpointWriter out(c, graph, parameters, path, options);
    WordsWriter words(beside_it, tokenizer_to_llama2c(*tokenizer), options.existing);
    out.write();
    commit(out, words, path, options.existing);
    if (words.differs()) note_written(beside_it);
}

}  // namespace linnet
