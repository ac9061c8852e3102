// linnet convert: a model in another format.
#include <cstdint>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/output.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/percent.h"
#include "model/architectures.h"
#include "model/convert/open.h"
#include "model/convert/peft.h"
#include "model/convert/sinks.h"
#include "model/model.h"
#include "train/run_model.h"

namespace linnet {
namespace {

struct Options {
    std::string in, out, type, tokenizer, max_part, base, version;
    bool overwrite = false, verbose = false;
};

/// The format of OUT by its name; a checkpoint's kind follows from the model.
enum class Target { gguf, folder, checkpoint };

Target target_of(const std::string& out) {
    if (out.ends_with(".gguf")) return Target::gguf;
    if (out.ends_with(".bin")) return Target::checkpoint;
    for (const char* suffix : {".safetensors", ".json", ".pt", ".pth"})
        if (out.ends_with(suffix))
            usage_error("OUT", "a name that ends in .gguf or .bin, or a folder's", linnet::quoted(out));
    return Target::folder;
}

/// What becomes of what; no format: an adapter.
struct Conversion {
    std::optional<ModelFormat> from;
    Target to;

    std::string in() const {
        constexpr const char* formats[] = {"a model (GGUF)", "a model's folder", "a checkpoint of llama2.c",
                                           "a checkpoint of llm.c"};
        return from ? formats[static_cast<std::size_t>(*from)] : "an adapter";
    }
    std::string both() const {
        constexpr const char* formats[] = {"GGUF", "a folder", "a checkpoint of llama2.c",
                                           "a checkpoint of llm.c"};
        constexpr const char* targets[] = {"GGUF", "a folder", "a checkpoint"};
        return std::string(from ? formats[static_cast<std::size_t>(*from)] : "an adapter") + " to " +
               targets[static_cast<std::size_t>(to)];
    }
};

/// An option that some conversions have no use for: there it is refused.
struct Use {
    const char* option;
    std::string Options::*value;
    bool (*used)(const Conversion&);
    const char* expected;
    std::string (Conversion::*got)() const;
    const char* why;
};
constexpr Use uses[] = {
    {"--type", &Options::type, [](const Conversion& c) { return c.from.has_value(); }, "a model as IN",
     &Conversion::in, "adapters are of f32"},
    {"--llama2c-version", &Options::version,
     [](const Conversion& c) { return c.from && c.to == Target::checkpoint; }, "an OUT that ends in .bin",
     &Conversion::both, "it is of llama2.c's checkpoints"},
    {"--tokenizer", &Options::tokenizer,
     [](const Conversion& c) { return c.from == ModelFormat::llama2c || c.from == ModelFormat::llmc; },
     "a checkpoint of llama2.c or llm.c as IN", &Conversion::in, "others have one of their own"},
    {"--base", &Options::base, [](const Conversion& c) { return !c.from; }, "an adapter as IN",
     &Conversion::in, ""},
    {"--max-part", &Options::max_part, [](const Conversion& c) { return c.from && c.to == Target::folder; },
     "a model to write as a folder", &Conversion::both, "safetensors alone come in parts"},
};

void refuse_unused(const Options& options, const Conversion& conversion) {
    for (const Use& use : uses)
        if (!(options.*use.value).empty() && !use.used(conversion))
            usage_error(use.option, use.expected, (conversion.*use.got)(), use.why);
}

/// Bytes of what was written, where that stands in a folder that may hold other files; else none.
using Written = std::optional<std::uint64_t>;

void to_gguf(const Options& options, ModelFormat format, const OpenOptions& wanted) {
    if (format == ModelFormat::gguf) {
        (void)Gguf(options.in);  // throws where IN is no GGUF
        usage_error("OUT", "another format than IN's", "GGUF twice", "linnet quantize changes GGUF's types");
    }
    const ModelSource source = open_source(options.in, format, wanted);
    for (const std::string& line : source.notes) note(line);
    require_gguf_tokenizer(options.in, source.tokenizer);
    if (options.verbose)
        for (const SourceTensor& t : source.tensors) note(t.from + " -> " + t.name);
    const Existing found = existing(options.overwrite);
    prepare_output(options.out, found);
    Percent progress("converted", true);
    write_gguf(source, options.out, found, std::ref(progress));
    progress.clear();
}

/// As a folder or a checkpoint.
Written write_model(const Options& options, const OutgoingModel& model, const TokenizerPtr& tokenizer,
                    const SinkOptions& to, Target target) {
    const Architecture* architecture = nullptr;
    const ModelConfig config = read_config(model.file(), architecture);
    require_vocabulary(model.file().path(), config, *tokenizer);
    if (target == Target::folder) return write_folder(model, tokenizer, options.out, to);
    prepare_output(options.out, to.existing);
    // Each says what else it wants of a model; they have no position in common.
    const bool llmc = config.position.kind.at(0) == "learned";
    if (llmc && !options.version.empty())
        usage_error("--llama2c-version", "a model for llama2.c", "one for llm.c");
    llmc ? write_llmc(model, options.out, to) : write_llama2c(model, tokenizer, options.out, to);
    return {};
}

Written to_folder_or_checkpoint(const Options& options, ModelFormat format, const OpenOptions& from,
                                SinkOptions to, Target target) {
    if (options.verbose) to.mapped = [](const std::string& line) { note(line); };
    Percent progress("converted", true);
    to.progress = std::ref(progress);
    Written written;
    if (format == ModelFormat::gguf) {
        const Gguf file(options.in);
        written = write_model(options, file, tokenizer_from_gguf(file), to, target);
    } else {
        const ModelSource source = open_source(options.in, format, {{}, from.tokenizer});
        for (const std::string& line : source.notes) note(line);
        const OutgoingModel model(source);
        written =
            write_model(options, model,
                        source.tokenizer ? source.tokenizer : tokenizer_from_gguf(model.file()), to, target);
    }
    progress.clear();
    return written;
}

/// Whether IN is an adapter: a PEFT folder or a GGUF file.
bool is_adapter_path(const std::string& path) {
    if (is_peft_folder(path)) return true;
    return !is_folder(path) && MappedFile(path).text().starts_with("GGUF") &&
           is_adapter(Gguf(MappedFile(path)));
}

/// An adapter in its other form; the model that it is for says how rows are ordered in each.
int convert_adapter(const Options& options) {
    const Target target = target_of(options.out);
    const bool folder = is_peft_folder(options.in);
    if (target == Target::checkpoint || folder == (target == Target::folder))
        usage_error(
            "OUT", folder ? "NAME.gguf, for an adapter of PEFT's" : "a folder's name, for an adapter in GGUF",
            linnet::quoted(options.out));
    refuse_unused(options, {std::nullopt, target});
    if (options.base.empty()) usage_error("--base", "the model that the adapter is for", "none");
    const std::shared_ptr<const Model> base = Model::open(model_of_run(options.base));
    const Adapter adapter = open_adapter({options.in, 1}, *base);
    if (options.verbose)
        for (const auto& [tensor, module] : peft_modules(adapter, *base))
            note(folder ? module + " -> " + tensor : tensor + " -> " + module);
    const Existing found = existing(options.overwrite);
    Written written;
    if (target == Target::folder) {
        written = write_peft_folder(adapter, *base, options.out, found);
    } else {
        const std::string chat_template = adapter.chat_template.source();
        prepare_output(options.out, found);
        save_adapter(options.out, base->architecture().name, adapter.shape.targets, adapter.pairs,
                     adapter.alpha, last_name(options.in), {}, found, chat_template);
    }
    note_written(options.out, written);
    return 0;
}

int run(Options options) {
    install_stop_signals();
    options.in = adapter_of_run(options.in);
    if (is_adapter_path(options.in)) return convert_adapter(options);
    options.in = model_of_run(options.in);
    OpenOptions from;
    SinkOptions to;
    from.tokenizer = tokenizer_of_run(options.tokenizer);
    if (!options.type.empty()) from.type = to.type = dtype_from_name(options.type);
    if (!options.max_part.empty()) to.max_part = parse_size("--max-part", options.max_part);
    to.existing = existing(options.overwrite);
    const Target target = target_of(options.out);
    const ModelFormat format = model_format(options.in);
    refuse_unused(options, {format, target});
    if (!options.version.empty()) to.version = options.version[0] - '0';
    Written written;
    if (target == Target::gguf)
        to_gguf(options, format, from);
    else
        written = to_folder_or_checkpoint(options, format, from, to, target);
    note_written(options.out, written);
    return 0;
}

}  // namespace

Action add_convert(CLI::App& app, const Globals&) {
    auto options = std::make_shared<Options>();
    auto* in =
        add_file(app, "IN", options->in,
                 "model to read: GGUF, a Hugging Face folder, the folder of a training run, a checkpoint of "
                 "llama2.c or llm.c; or an adapter: GGUF or a PEFT folder");
    add_hidden_names(app, "-m,--model", in);
    auto* out = add_output(
        app, "OUT", options->out,
        "model to write: NAME.gguf, NAME.bin (llama2.c's or llm.c's, as the model is), or a folder's name");
    add_hidden_names(app, "-o,--out", out->required());
    add_choice(app, "--type", options->type, {"f32", "f16", "bf16"}, "type of the weights")
        ->default_str("as stored");
    add_choice(app, "--llama2c-version", options->version, {"0", "1", "2"},
               "llama2.c format; 2 has 8-bit weights")
        ->default_str("0");
    add_text(app, "-t,--tokenizer", options->tokenizer, "tokenizer for a checkpoint of llama2.c or llm.c")
        ->type_name("FILE")
        ->default_str("what lies beside it: tokenizer.bin; tokenizer.gguf, .json or .model");
    add_text(app, "--base", options->base, "the model that the adapter IN is for")->type_name("MODEL");
    add_text(app, "--max-part", options->max_part,
             "largest safetensors file, with K, M or G (powers of 1000); a larger model is written in parts")
        ->type_name("SIZE");
    app.add_flag("--verbose", options->verbose, "say what became of which tensor");
    add_overwrite(app, options->overwrite);
    return [options] { return run(*options); };
}

}  // namespace linnet
