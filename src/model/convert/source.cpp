#include "model/convert/source.h"

#include <algorithm>

#include "base/error.h"
#include "base/signals.h"
#include "model/weights.h"

namespace linnet {
namespace {

std::size_t bytes_of(const SourceTensor& t) {
    return static_cast<std::size_t>(stored_bytes(t.type, t.shape.count()));
}

/// What a model seen as GGUF keeps.
struct Held {
    std::shared_ptr<const void> source;
    std::vector<std::string> names;
    std::vector<std::vector<std::byte>> made;
};

}  // namespace

std::int64_t rows_at_a_time(std::int64_t columns) {
    return std::max<std::int64_t>(1, (std::int64_t{1} << 20) / columns);
}

void refuse_pickle(const std::string& path, std::string_view expected) {
    fail_input(path, "", expected, "PyTorch's weights",
               "pickles execute code, and are not read; transformers' save_pretrained writes safetensors");
}

void emit_tensor(const SourceTensor& t, const GgufWriter::Sink& sink) {
    auto pass = [&](const std::byte* data, std::size_t size) {
        if (int signal = stop_signal()) throw Stopped{signal};
        sink(data, size);
    };
    constexpr std::size_t some = std::size_t{4} << 20;
    for (std::size_t at = 0; at < t.in_place.size(); at += some)
        pass(t.in_place.data() + at, std::min(some, t.in_place.size() - at));
    if (!t.in_place.empty()) return;
    std::vector<std::byte> bytes;
    for (const MadeRows& part : t.made) {
        const std::int64_t rows = rows_at_a_time(part.columns);
        for (std::int64_t row = 0; row < part.rows; row += rows) {
            const std::int64_t end = std::min(part.rows, row + rows);
            bytes.resize(static_cast<std::size_t>((end - row) * part.columns * info(t.type).bytes));
            part.read({row, end, 0, part.columns}, bytes.data());
            pass(bytes.data(), bytes.size());
        }
    }
}

DType gguf_type(const Parameter& parameter, DType stored, const OpenOptions& options) {
    if (always_f32(parameter)) return DType::f32;
    if (options.type) return *options.type;
    return stored == DType::f64 ? DType::f32 : stored;
}

std::vector<const SourceTensor*> bound_tensors(const ModelSource& source) {
    std::vector<const SourceTensor*> all;
    for (const SourceTensor& t : source.tensors) {
        if (t.in_place.empty() && !t.apart.empty())
            for (const SourceTensor& part : t.apart) all.push_back(&part);
        else
            all.push_back(&t);
    }
    return all;
}

namespace {

/// `bytes_of_made`: of a tensor that lies nowhere.
Gguf seen_as_gguf(
    const ModelSource& source,
    const std::function<std::span<const std::byte>(const SourceTensor&, Held&)>& bytes_of_made) {
    auto held = std::make_shared<Held>();
    held->source = source.keep;
    const std::vector<const SourceTensor*> all = bound_tensors(source);
    held->names.reserve(all.size());
    std::vector<GgufTensor> tensors;
    for (const SourceTensor* t : all) {
        held->names.push_back(t->name);
        tensors.push_back({held->names.back(), t->type, t->shape,
                           t->in_place.empty() ? bytes_of_made(*t, *held) : t->in_place});
    }
    return Gguf(source.path, source.metadata.header(), std::move(tensors), held);
}

}  // namespace

Gguf as_gguf(const ModelSource& source) {
    return seen_as_gguf(source, [](const SourceTensor& t, Held& held) -> std::span<const std::byte> {
        auto& made = held.made.emplace_back(bytes_of(t));
        std::size_t at = 0;
        emit_tensor(t, [&](const void* data, std::size_t size) {
            std::copy_n(static_cast<const std::byte*>(data), size, made.data() + at);
            at += size;
        });
        return made;
    });
}

Gguf outline(const ModelSource& source) {
    return seen_as_gguf(source, [](const SourceTensor&, Held&) { return std::span<const std::byte>(); });
}

void write_gguf(const ModelSource& source, const std::string& path, Existing existing,
                const std::function<void(double done, double all)>& progress) {
    GgufWriter out = source.metadata;
    double done = 0, all = 0;
    for (const SourceTensor& t : source.tensors) all += static_cast<double>(bytes_of(t));
    for (const SourceTensor& t : source.tensors)
        out.add_tensor(t.name, t.type, t.shape, [&](const GgufWriter::Sink& sink) {
            emit_tensor(t, [&](const void* data, std::size_t size) {
                sink(data, size);
                done += static_cast<double>(size);
                progress(done, all);
            });
        });
    out.write(path, existing, false);
}

}  // namespace linnet
