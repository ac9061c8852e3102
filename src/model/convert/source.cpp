#include "model/convert/source.h"

#include <algorithm>

#include "base/error.h"
#include "base/signals.h"
#include "model/weights.h"

namespace linnet {
namespace {

constexpr std::int64_t piece = std::int64_t{1} << 20;  // elements in work at a time

std::size_t bytes_of(const SourceTensor& t) {
    return static_cast<std::size_t>(t.shape.count() / info(t.type).block * info(t.type).bytes);
}

/// What a model seen as GGUF keeps.
struct Held {
    std::shared_ptr<const void> source;
    std::vector<std::string> names;
    std::vector<std::vector<std::byte>> made;
};

}  // namespace

void refuse_pickle(const std::string& path, std::string_view expected) {
    fail_input(path, "", expected, "PyTorch's weights",
               "pickles execute code, and are not read; transformers' save_pretrained writes safetensors");
}

void emit_rows(std::int64_t rows, std::int64_t columns, const ReadRows& read, const GgufWriter::Sink& sink) {
    const std::int64_t some = std::max<std::int64_t>(1, piece / columns);
    std::vector<std::byte> bytes;
    for (std::int64_t row = 0; row < rows; row += some) {
        read(row, std::min(rows, row + some), bytes);
        sink(bytes.data(), bytes.size());
    }
}

DType gguf_type(const Parameter& parameter, DType stored, const SourceOptions& options) {
    if (always_f32(parameter)) return DType::f32;
    if (options.type) return *options.type;
    return stored == DType::f64 ? DType::f32 : stored;
}

Gguf as_gguf(const ModelSource& source) {
    auto held = std::make_shared<Held>();
    held->source = source.keep;
    std::vector<const SourceTensor*> all;
    for (const SourceTensor& t : source.tensors) {
        if (t.in_place.empty() && !t.apart.empty())
            for (const SourceTensor& part : t.apart) all.push_back(&part);
        else
            all.push_back(&t);
    }
    held->names.reserve(all.size());
    std::vector<GgufTensor> tensors;
    for (const SourceTensor* t : all) {
        held->names.push_back(t->name);
        std::span<const std::byte> bytes = t->in_place;
        if (bytes.empty()) {
            auto& made = held->made.emplace_back(bytes_of(*t));
            std::size_t at = 0;
            t->emit([&](const void* data, std::size_t size) {
                std::copy_n(static_cast<const std::byte*>(data), size, made.data() + at);
                at += size;
            });
            bytes = made;
        }
        tensors.push_back({held->names.back(), t->type, t->shape, bytes});
    }
    return Gguf(source.path, source.metadata.header(), std::move(tensors), held);
}

void write_gguf(const ModelSource& source, const std::string& path, Existing existing,
                const std::function<void(double done, double all)>& progress) {
    GgufWriter out = source.metadata;
    double done = 0, all = 0;
    for (const SourceTensor& t : source.tensors) all += static_cast<double>(bytes_of(t));
    for (const SourceTensor& t : source.tensors)
        out.add_tensor(t.name, t.type, t.shape, [&](const GgufWriter::Sink& sink) {
            auto pass = [&](const void* data, std::size_t size) {
                if (int signal = stop_signal()) throw Stopped{signal};
                sink(data, size);
                done += static_cast<double>(size);
                progress(done, all);
            };
            if (t.in_place.empty()) return t.emit(pass);
            constexpr std::size_t some = std::size_t{4} << 20;
            for (std::size_t at = 0; at < t.in_place.size(); at += some)
                pass(t.in_place.data() + at, std::min(some, t.in_place.size() - at));
        });
    out.write(path, existing, false);
}

}  // namespace linnet
