#include "train/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/sha256.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view prefix = "step-", partial = ".partial-";
constexpr std::size_t kept = 2;

std::string step_name(std::int64_t step) {
    std::string digits = std::to_string(step);
    return std::string(prefix) + std::string(digits.size() < 8 ? 8 - digits.size() : 0, '0') + digits;
}

/// Folders of whole checkpoints, oldest first.
std::vector<fs::path> checkpoints(const std::string& folder) {
    std::vector<fs::path> found;
    std::error_code missing;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, missing))
        if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
}

/// Removes a folder when the scope ends, also by an error (a full disk).
struct Removed {
    const std::string path;
    ~Removed() {
        std::error_code ignored;
        fs::remove_all(path, ignored);
    }
};

std::string write_moments(const std::string& path, Learner& learner) {
    AtomicFile file(path);
    Sha256 sum;
    std::size_t bytes = static_cast<std::size_t>(learner.elements()) * sizeof(float);
    for (const float* moment : {learner.first_moment(), learner.second_moment()}) {
        file.write(moment, bytes);
        sum.update(moment, bytes);
    }
    file.commit();
    return sum.hex();
}

}  // namespace

void save_checkpoint(const std::string& folder, const Checkpoint& state, Learner& learner,
                     const ModelConfig& config, const Tokenizer& tokenizer, const Provenance& provenance) {
    make_directories(folder);
    remove_partial_checkpoints(folder);
    std::string name = step_name(state.step);
    std::string temporary = folder + "/" + std::string(partial) + name, path = folder + "/" + name;
    make_directories(temporary);
    const Removed left{temporary};
    json files;
    files["model.gguf"] = save_model(temporary + "/model.gguf", config, learner.traced().graph,
                                     learner.parameters(), tokenizer, DType::f32, name, provenance);
    files["optimizer.bin"] = write_moments(temporary + "/optimizer.bin", learner);
    json manifest = {{"step", state.step},       {"data", state.data}, {"log_bytes", state.log_bytes},
                     {"seconds", state.seconds}, {"sha256", files},    {"config", state.config}};
    write_file(temporary + "/manifest.json", manifest.dump(1) + "\n");
    std::error_code error;
    fs::remove_all(path, error);  // a run that was resumed before this step writes it again
    fs::rename(temporary, path, error);
    if (error) fail_errno(path, "", error.value());
    sync_directory(folder);
    std::vector<fs::path> all = checkpoints(folder);
    for (std::size_t i = 0; i + kept < all.size(); i++) fs::remove_all(all[i], error);
}

void remove_partial_checkpoints(const std::string& folder) {
    std::error_code ignored;
    std::vector<fs::path> stale;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
        if (entry.path().filename().string().starts_with(partial)) stale.push_back(entry.path());
    for (const fs::path& path : stale) fs::remove_all(path, ignored);
}

std::optional<std::string> newest_checkpoint(const std::string& folder) {
    std::vector<fs::path> all = checkpoints(folder);
    if (all.empty()) return std::nullopt;
    return all.back().string();
}

Checkpoint read_checkpoint(const std::string& folder) {
    std::string path = folder + "/manifest.json";
    json m = parse_json(read_file(path), path);
    Checkpoint state;
    try {
        state.step = m.at("step").get<std::int64_t>();
        state.config = m.at("config");
        state.data = m.at("data").get<std::string>();
        state.log_bytes = m.at("log_bytes").get<std::uint64_t>();
        state.seconds = m.at("seconds").get<double>();
        for (const auto& [name, expected] : m.at("sha256").items()) {
            if (name != "model.gguf" && name != "optimizer.bin")
                fail_input(path, "sha256", "model.gguf and optimizer.bin", name);
            MappedFile file(folder + "/" + name);
            std::string found = sha256(file.text());
            if (found != expected.get<std::string>())
                fail_input(file.path(), "sha256", expected.get<std::string>(), found,
                           "the checkpoint is damaged");
        }
    } catch (const json::exception&) {
        fail_input(path, "", "a checkpoint's manifest", "other JSON");
    }
    if (state.step < 0) fail_input(path, "step", "a step", std::to_string(state.step));
    return state;
}

void load_checkpoint(const std::string& folder, Learner& learner) {
    Gguf file(folder + "/model.gguf");
    const Architecture* architecture = nullptr;
    read_config(file, architecture);
    std::vector<std::vector<float>> converted;
    const Graph& graph = learner.traced().graph;
    std::vector<Tensor> from = bind_parameters(graph, file, *architecture, converted),
                        to = learner.parameters();
    for (std::size_t i = 0; i < to.size(); i++)
        kernels().load(to[i].shape.count(), from[i].type, from[i].data, to[i].as<float>());
    MappedFile moments(folder + "/optimizer.bin");
    std::size_t bytes = static_cast<std::size_t>(learner.elements()) * sizeof(float);
    if (moments.bytes().size() != 2 * bytes)
        fail_input(moments.path(), "", std::to_string(2 * bytes) + " bytes",
                   std::to_string(moments.bytes().size()));
    std::memcpy(learner.first_moment(), moments.bytes().data(), bytes);
    std::memcpy(learner.second_moment(), moments.bytes().data() + bytes, bytes);
}

}  // namespace linnet
