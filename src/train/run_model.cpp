#include "train/run_model.h"

#include <filesystem>

#include "base/error.h"
#include "train/checkpoint.h"

namespace linnet {

namespace {

/// The file `name` of a run, or of its newest checkpoint; empty where there is none.
std::string file_of_run(const std::string& path, const char* name) {
    std::error_code ignored;
    std::string best = path + "/" + name;
    if (std::filesystem::exists(best, ignored)) return best;
    auto newest = newest_checkpoint(path + "/checkpoints");
    best = newest ? *newest + "/" + name : "";
    return newest && std::filesystem::exists(best, ignored) ? best : "";
}

bool is_folder(const std::string& path) {
    std::error_code ignored;
    return !path.empty() && std::filesystem::is_directory(path, ignored);
}

}  // namespace

std::string model_of_run(const std::string& path) {
    if (!is_folder(path)) return path;
    std::error_code ignored;
    if (std::string model = file_of_run(path, best_model); !model.empty()) return model;
    if (std::string adapter = file_of_run(path, best_adapter); !adapter.empty())
        fail_input(path, "", "a model, or a run that has one", "a run that trained an adapter",
                   "-m names the model that it began from, --lora this folder");
    if (std::filesystem::exists(path + "/log.jsonl", ignored))
        fail_input(path, "", "a model, or a run that has one", "a run before its first evaluation");
    return path;
}

std::string adapter_of_run(const std::string& path) {
    if (!is_folder(path)) return path;
    const std::string adapter = file_of_run(path, best_adapter);
    return adapter.empty() ? path : adapter;
}

}  // namespace linnet
