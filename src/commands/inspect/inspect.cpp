// linnet inspect: what is in a model file, for people or as JSON.
#include <sys/stat.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/json_line.h"
#include "base/nearest.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "base/utf8.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/percent.h"
#include "data/corpus_index.h"
#include "formats/gguf.h"
#include "formats/json_append.h"
#include "model/convert/open.h"
#include "model/engine/engine.h"
#include "model/look/finite.h"
#include "model/model.h"
#include "train/run_model.h"

namespace linnet {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
    std::string path;
    bool json = false, check = false;
};

constexpr std::size_t first_elements = 8;  // of an array that are shown

/// Element i of an array that has no strings.
Json element(const GgufArray& array, std::size_t i) {
    Json shown;
    const bool is_number = with_number_type(array.kind, [&](auto value) {
        std::memcpy(&value, array.bytes.data() + i * sizeof value, sizeof value);
        shown = value;
    });
    if (!is_number) shown = array.bytes[i] != std::byte{0};  // a boolean
    return shown;
}

/// An array by its kind, its length and its beginning; any other value as it is.
Json shown(const GgufValue& value) {
    if (const auto* array = std::get_if<GgufArray>(&value)) {
        Json first = Json::array();
        for (std::size_t i = 0; i < std::min<std::size_t>(array->count, first_elements); i++)
            first.push_back(array->kind == GgufKind::string ? Json(array->strings[i]) : element(*array, i));
        return {{"type", gguf_kind_name(array->kind)}, {"count", array->count}, {"first", first}};
    }
    return std::visit(
        [](const auto& plain) -> Json {
            if constexpr (std::is_same_v<std::decay_t<decltype(plain)>, GgufArray>)
                return nullptr;
            else
                return plain;
        },
        value);
}

std::vector<std::int64_t> dimensions(const Shape& shape) {
    return {shape.dim.begin(), shape.dim.begin() + shape.rank};
}

std::int64_t parameters(const Gguf& file) {
    std::int64_t count = 0;
    for (const GgufTensor& tensor : file.tensors()) count += tensor.shape.count();
    return count;
}

struct TypeTotal {
    bool runs = true;
    std::int64_t tensors = 0, bytes = 0, weights = 0;
    double bits() const { return 8 * static_cast<double>(bytes) / static_cast<double>(weights); }
};

/// What the tensors take, by type, the largest first.
std::vector<std::pair<std::string, TypeTotal>> type_totals(const Gguf& file) {
    std::map<std::pair<DType, std::string>, TypeTotal> totals;
    for (const GgufTensor& tensor : file.tensors()) {
        TypeTotal& total = totals[{tensor.type, tensor.type_name()}];
        total.runs = info(tensor.type).is_weight;
        total.tensors++;
        total.bytes += static_cast<std::int64_t>(tensor.bytes.size());
        total.weights += tensor.shape.count();
    }
    std::vector<std::pair<std::string, TypeTotal>> sorted;
    for (const auto& [type, total] : totals) sorted.emplace_back(type.second, total);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
    return sorted;
}

/// A file, and its tokenizer where that stands beside it.
struct Opened {
    TokenizerPtr tokenizer;
    Gguf file;

    explicit Opened(const std::string& path) : file(open_model_file(path, &tokenizer, UnknownTypes::kept)) {}
};

/// Why this file is no model that runs here; empty where it is one.
std::vector<std::string> obstacles(const Opened& opened) {
    const Gguf& file = opened.file;
    std::vector<std::string> reasons;
    if (file.tensors().empty())
        return {file.find("tokenizer.ggml.model") ? "it holds a vocabulary alone" : "it holds no tensors"};
    for (const auto& [type, total] : type_totals(file))
        if (!total.runs)
            reasons.push_back("tensors of type " + type + " (" + std::to_string(total.tensors) + ")");
    try {
        require_model(file, opened.tokenizer);
    } catch (const Error& error) {
        std::string line = error.what();
        if (line.starts_with(file.path() + ": ")) line.erase(0, file.path().size() + 2);
        // A type that is on the list already is no second reason.
        const bool is_type = !reasons.empty() && (line.find("computes with") != line.npos ||
                                                  line.find("a tensor type of ggml") != line.npos);
        if (!is_type) reasons.push_back(line);
    }
    return reasons;
}

void print_json(const Opened& opened) {
    const Gguf& file = opened.file;
    const std::vector<std::string> reasons = obstacles(opened);
    Json out{{"file", file.path()},
             {"bytes", file.file_bytes()},
             {"parameters", parameters(file)},
             {"runs", reasons.empty()},
             {"obstacles", reasons}};
    Json& types = out["types"] = Json::object();
    for (const auto& [type, total] : type_totals(file))
        types[type] = {{"tensors", total.tensors},
                       {"bytes", total.bytes},
                       {"weights", total.weights},
                       {"bits_per_weight", total.bits()},
                       {"runs", total.runs}};
    Json& metadata = out["metadata"] = Json::object();
    for (const auto& [key, value] : file.values()) append(metadata, std::string(key), shown(value));
    Json& tensors = out["tensors"] = Json::array();
    for (const GgufTensor& tensor : file.tensors())
        tensors.push_back({{"name", tensor.name},
                           {"type", tensor.type_name()},
                           {"shape", dimensions(tensor.shape)},
                           {"bytes", tensor.bytes.size()}});
    write_stdout(json_line(out));
}

/// `text` in `width` columns at least (a longer one takes its room).
std::string column(std::string_view text, std::size_t width) {
    std::string out(text);
    out.append(out.size() < width ? width - out.size() : 0, ' ');
    return out + "  ";
}

std::string line_of(const Json& value) {
    if (value.is_number_float()) {  // most are f32 in the file: seven digits say all
        char text[32];
        std::snprintf(text, sizeof text, "%.7g", value.get<double>());
        return text;
    }
    if (!value.is_object()) {
        std::string text = dumped(value);
        if (text.size() <= 100) return text;
        return text.substr(0, character_start(text, 97)) + "…";
    }
    std::string text = dumped(value["count"]) + " × " + value["type"].get<std::string>() + ":";
    for (const Json& one : value["first"]) {
        std::string next = dumped(one);
        if (text.size() + next.size() > 96) break;
        text += " " + next;
    }
    return text + (value["count"].get<std::uint64_t>() > value["first"].size() ? " …" : "");
}

/// "q4_k      12.3 MB   in 34 tensors    4.50 bits per weight"
std::string totals_line(std::string_view name, const TypeTotal& total) {
    char bits[48];
    std::snprintf(bits, sizeof bits, "%6.2f bits per weight", total.bits());
    return column(name, 8) + column(human_bytes(static_cast<double>(total.bytes)), 8) +
           column("in " + std::to_string(total.tensors) + (total.tensors == 1 ? " tensor" : " tensors"), 14) +
           bits;
}

/// What kind of file it is, how large, of which types, and whether it runs.
std::string summary(const Opened& opened) {
    const Gguf& file = opened.file;
    const std::string architecture = printable(file.string("general.architecture").value_or("none"));
    const ModelFormat format = model_format(file.path());
    std::string out = printable(file.path()) + ": " + std::string(format_name(format)) + ", " +
                      human_bytes(static_cast<double>(file.file_bytes())) +
                      (format == ModelFormat::gguf ? "\n" : " as GGUF\n");
    out += "architecture " + architecture + ", " + human_count(static_cast<double>(parameters(file))) +
           " parameters in " + std::to_string(file.tensors().size()) + " tensors\n";
    TypeTotal all;
    for (const auto& [type, total] : type_totals(file)) {
        out += "  " + totals_line(type, total) + (total.runs ? "\n" : "  does not run\n");
        all.tensors += total.tensors, all.bytes += total.bytes, all.weights += total.weights;
    }
    if (all.tensors > 0) out += "  " + totals_line("all", all) + "\n";
    const std::vector<std::string> reasons = obstacles(opened);
    out += reasons.empty() ? "runs here\n" : "does not run here:\n";
    for (const std::string& reason : reasons) out += "  " + printable(reason) + "\n";
    return out;
}

void print_text(const Opened& opened) {
    const Gguf& file = opened.file;
    std::string out = summary(opened);
    std::size_t width = 0;
    for (const auto& [key, value] : file.values())
        width = std::max(width, std::min<std::size_t>(key.size(), 44));
    out += "\nmetadata (" + std::to_string(file.values().size()) + "):\n";
    for (const auto& [key, value] : file.values())
        out += "  " + column(printable(key), width) + printable(line_of(shown(value))) + "\n";
    std::size_t type_width = 4;
    width = 0;
    for (const GgufTensor& tensor : file.tensors()) {
        width = std::max(width, std::min<std::size_t>(tensor.name.size(), 64));
        type_width = std::max(type_width, tensor.type_name().size());
    }
    out += "\ntensors (" + std::to_string(file.tensors().size()) + "; outermost dimension first):\n";
    for (const GgufTensor& tensor : file.tensors()) {
        std::string shape;
        for (std::int64_t d : dimensions(tensor.shape))
            shape += (shape.empty() ? "" : " x ") + std::to_string(d);
        out += "  " + column(printable(tensor.name), width) + column(tensor.type_name(), type_width) +
               column(shape, 16) + human_bytes(static_cast<double>(tensor.bytes.size())) + "\n";
    }
    write_stdout(out);
}

/// A checkpoint's manifest or a corpus's index: as it stands, or on one line.
void print_json_file(const std::string& path, bool one_line) {
    const std::string text = read_file(path);
    write_stdout(one_line ? json_line(parse_json(text, path)) : printable(text, true));
}

bool exists(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0;
}

/// The JSON file by which a folder is shown, where it is a checkpoint (known by its manifest; with --check it
/// stands for its model) or a corpus; else empty.
std::string json_of_folder(const Options& options) {
    const std::string folder = options.path + "/";
    if (exists(folder + "config.json")) return "";  // of Hugging Face, whatever else is there
    const bool model = exists(folder + best_model);
    std::string json;
    if (exists(folder + "manifest.json") && !(model && options.check)) json = folder + "manifest.json";
    if (json.empty() && !model && exists(folder + corpus_index_name)) json = folder + corpus_index_name;
    if (!json.empty() && options.check) usage_error("--check", "a model, whose weights it looks at", json);
    return json;
}

/// All weights looked at: an Error where one is not finite.
void scan(const Gguf& file, const Options& options, const Globals& globals) {
    install_stop_signals();
    Percent percent("scanned");
    const Scanned scanned = scan_weights(file, globals.threads, std::ref(percent));
    percent.clear();
    if (options.json) {
        const Json out{{"file", file.path()},
                       {"finite", true},
                       {"tensors", scanned.tensors},
                       {"blocks", scanned.blocks},
                       {"skipped", scanned.skipped}};
        return write_stdout(json_line(out));
    }
    std::string out = "all weights are finite: " + std::to_string(scanned.tensors) + " tensors, " +
                      std::to_string(scanned.blocks) + " blocks";
    if (scanned.skipped > 0)
        out += "; " + std::to_string(scanned.skipped) + " tensors are of types that do not run here";
    write_stdout(out + "\n");
}

int run(const Options& options, const Globals& globals) {
    struct stat status {};
    std::string path = options.path;
    if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
        if (const std::string json = json_of_folder(options); !json.empty()) {
            print_json_file(json, options.json);
            return 0;
        }
        path = model_of_run(path);
        if (path == options.path && !exists(path + "/config.json"))  // of Hugging Face
            fail_input(path, "",
                       "a model file, or a folder with model.gguf, config.json, manifest.json or index.json",
                       "another folder");
    }
    if (!exists(path)) {
        std::vector<std::string> names;
        for (const Command& command : commands())
            if (std::string_view name = command.name; name.starts_with("inspect "))
                names.emplace_back(name.substr(8));
        if (auto near = nearest(path, names))
            throw Error(Exit::io,
                        path + ": No such file or directory (did you mean linnet inspect " + *near + "?)");
    }
    const Opened opened(path);
    if (options.check) {
        scan(opened.file, options, globals);
        return 0;
    }
    options.json ? print_json(opened) : print_text(opened);
    return 0;
}

}  // namespace

Action add_inspect(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    // Required unless `inspect logits` is meant: then this command does not run at all.
    auto* file = add_text(app, "FILE", options->path,
                          "GGUF file, Hugging Face folder, or the folder of a training run");
    file->type_name("FILE");
    add_hidden_names(app, "-m,--model", file);
    app.add_flag("--json", options->json,
                 "one JSON object: file, bytes, parameters, runs, obstacles, types, metadata, tensors");
    app.add_flag("--check", options->check,
                 "look at all weights; one that is not finite is an error that names tensor, row and block");
    return [options, &globals] {
        if (options->path.empty()) usage_error("FILE", "a file to inspect", "none", "linnet inspect FILE");
        return run(*options, globals);
    };
}

}  // namespace linnet
