#include "model/quantize/quantize.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/processors.h"
#include "base/signals.h"
#include "base/team.h"
#include "kernels/kernels.h"
#include "model/name_pattern.h"
#include "model/narrow.h"
#include "model/rewrite.h"

namespace linnet {
namespace {

constexpr std::int64_t piece = std::int64_t{1} << 22;  // weights in work at a time, by all threads together
constexpr std::uint32_t block_layouts = 2;  // general.quantization_version: ggml's GGML_QNT_VERSION

/// One tensor on its way: its rows loaded, stored in another type, loaded again for the error.
class Conversion {
  public:
    Conversion(const std::string& path, const GgufTensor& from, DType to,
               const std::vector<float>* importance)
        : path_(path),
          from_(from),
          to_(to),
          importance_(importance),
          columns_(from.shape.columns()),
          rows_(from.shape.count() / columns_) {}

    std::int64_t columns() const { return columns_; }
    std::int64_t rows() const { return rows_; }

    /// Rows [begin, end) as stored, into `out`; their squared error and squares are added up.
    void convert(std::int64_t begin, std::int64_t end, int threads, std::vector<std::byte>& out) {
        out.resize(static_cast<std::size_t>((end - begin) * stored_bytes(to_, columns_)));
        sums_.assign(static_cast<std::size_t>(end - begin), {});
        run_team(threads, [&](Worker worker) {
            Range range = worker.share(end - begin);
            std::vector<float> source(static_cast<std::size_t>(columns_)), stored(source.size());
            for (std::int64_t i = range.begin; i < range.end; i++) row(begin + i, i, source, stored, out);
        });
        for (std::size_t i = 0; i < sums_.size(); i++) {
            const std::int64_t row = begin + static_cast<std::int64_t>(i);
            if (!std::isfinite(sums_[i].source))
                fail_input(path_, "tensor " + quoted(from_.name) + ", row " + std::to_string(row),
                           "finite weights", "one that is not");
            if (!std::isfinite(sums_[i].error)) refuse_narrowed(path_, from_.name, row, to_);
            total_.error += sums_[i].error, total_.source += sums_[i].source;
        }
    }
    double relative_error() const { return total_.source > 0 ? std::sqrt(total_.error / total_.source) : 0; }

  private:
    struct RowSums {
        double error = 0, source = 0;
    };

    void row(std::int64_t index, std::int64_t at, std::vector<float>& source, std::vector<float>& stored,
             std::vector<std::byte>& out) {
        const std::byte* from = from_.bytes.data() + index * stored_bytes(from_.type, columns_);
        std::byte* to = out.data() + at * stored_bytes(to_, columns_);
        const KernelTable<float>& k = kernels();
        k.load(columns_, from_.type, from, source.data());
        RowSums& sums = sums_[static_cast<std::size_t>(at)];
        sums.source = k.sum_squares(columns_, source.data());
        if (!std::isfinite(sums.source)) return;
        // The search for scales weighs squared errors by magnitudes, and multiplies two sums of such, in f32.
        // No scale of f16 makes a weight so large; mxfp4's could.
        constexpr float most = 1e10F;
        if (info(to_).block > 1 && sums.source > double{most} * double{most} &&
            std::ranges::any_of(source, [](float x) { return std::abs(x) > most; })) {
            sums.error = INFINITY;
            return;
        }
        if (info(to_).block > 1)
            k.quantize(columns_, to_, source.data(), importance_ ? importance_->data() : nullptr, to);
        else
            k.store(columns_, to_, source.data(), to);
        k.load(columns_, to_, to, stored.data());
        k.scale(columns_, -1, source.data(), source.data());
        k.add(columns_, source.data(), stored.data(), stored.data());
        sums.error = k.sum_squares(columns_, stored.data());
    }

    const std::string& path_;
    const GgufTensor& from_;
    DType to_;
    const std::vector<float>* importance_;
    std::int64_t columns_, rows_;
    std::vector<RowSums> sums_;
    RowSums total_;
};

/// The type that a pattern gives; nothing where none fits.
std::optional<DType> chosen_type(const QuantizeOptions& options, std::string_view name) {
    std::optional<DType> type;
    for (const auto& [pattern, to] : options.tensors)
        if (matches(pattern, name)) type = to;
    return type;
}

DType type_for(const Gguf& file, const QuantizeOptions& options, const QuantizeModel& model,
               const GgufTensor& t) {
    if (!is_quantized_tensor(t)) return t.type == DType::f16 || t.type == DType::bf16 ? DType::f32 : t.type;
    std::optional<DType> chosen = chosen_type(options, t.name);
    if (chosen && t.shape.columns() % info(*chosen).block != 0)
        fail(Exit::usage, "--tensor", t.name,
             "a type whose blocks divide rows of " + std::to_string(t.shape.columns()),
             std::string(info(*chosen).name) + ", of blocks of " + std::to_string(info(*chosen).block));
    DType to = chosen ? *chosen
                      : quantized_type(*options.mix, model, t, options.pure,
                                       options.by_importance || !options.importance.empty());
    if (info(t.type).block > 1 && to != t.type && !options.requantize)
        fail_input(file.path(), "tensor " + quoted(t.name), "f32, f16 or bf16",
                   std::string(info(t.type).name),
                   "quantized already: the errors add up; --requantize does it all the same");
    return to;
}

}  // namespace

std::vector<QuantizedTensor> plan_quantization(const Gguf& file, const QuantizeOptions& options) {
    for (const auto& [pattern, type] : options.tensors) {
        bool used = false;
        for (const GgufTensor& t : file.tensors()) used |= is_quantized_tensor(t) && matches(pattern, t.name);
        if (!used)
            fail(Exit::usage, "--tensor", "", "the name of a matrix", quoted(pattern),
                 "linnet inspect lists them");
    }
    QuantizeModel model = quantize_model(file);
    std::vector<QuantizedTensor> plan;
    for (const GgufTensor& t : file.tensors()) {
        DType to = type_for(file, options, model, t);
        plan.push_back({std::string(t.name), t.type, to, t.shape, stored_bytes(to, t.shape.count()), 0});
    }
    return plan;
}

void write_quantized(const Gguf& file, const QuantizeOptions& options, std::vector<QuantizedTensor>& plan,
                     const std::string& path, const std::function<void(double done, double all)>& progress) {
    GgufWriter out;
    copy_metadata(file, out, [](std::string_view key) { return key == "general.quantization_version"; });
    out.add("general.file_type", options.mix->file_type);
    out.add("general.quantization_version", block_layouts);
    int threads = threads_or_cores(options.threads);
    double done = 0, all = 0;
    for (const QuantizedTensor& t : plan) all += static_cast<double>(t.shape.count());
    for (std::size_t i = 0; i < plan.size(); i++) {
        const GgufTensor& from = file.tensors()[i];
        QuantizedTensor& result = plan[i];
        auto emit = [&](const GgufWriter::Sink& sink) {
            auto weights = options.importance.find(result.name);
            Conversion conversion(file.path_of(from), from, result.to,
                                  weights == options.importance.end() ? nullptr : &weights->second);
            std::int64_t columns = conversion.columns(), some = std::max<std::int64_t>(1, piece / columns);
            std::vector<std::byte> bytes;
            for (std::int64_t row = 0; row < conversion.rows(); row += some) {
                std::int64_t end = std::min(conversion.rows(), row + some);
                if (result.to == from.type) {
                    std::int64_t size = stored_bytes(from.type, columns);
                    sink(from.bytes.data() + row * size, static_cast<std::size_t>((end - row) * size));
                } else {
                    conversion.convert(row, end, threads, bytes);
                    sink(bytes.data(), bytes.size());
                }
                done += static_cast<double>((end - row) * columns);
                progress(done, all);
                if (int signal = stop_signal()) throw Stopped{signal};
            }
            result.error = conversion.relative_error();
        };
        out.add_tensor(result.name, result.to, result.shape, emit);
    }
    out.write(path, options.existing, false);
}

}  // namespace linnet
