#include "train/run_model.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/terminal.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"

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

/// The same of the run that one without a model yet replaces: it stands until that has a checkpoint.
std::string file_of_replaced(const std::string& path, const char* name) {
    std::string file = file_of_run(path + "/" + set_aside, name);
    if (!file.empty())
        note("the run in " + path + " has no model yet: " + file + " is of the one that it is to replace");
    return file;
}

}  // namespace

std::string model_of_run(const std::string& path) {
    if (!is_folder(path)) return path;
    std::error_code ignored;
    if (std::string model = file_of_run(path, best_model); !model.empty()) return model;
    if (std::string adapter = file_of_run(path, best_adapter); !adapter.empty())
        fail_input(path, "", "a model, or a run that has one", "a run that trained an adapter",
                   "-m names the model that it began from, --lora this folder");
    if (std::string old = file_of_replaced(path, best_model); !old.empty()) return old;
    if (std::filesystem::exists(path + "/log.jsonl", ignored))
        fail_input(path, "", "a model, or a run that has one", "a run before its first evaluation");
    return path;
}

std::string tokenizer_of_run(const std::string& path) {
    std::error_code ignored;
    for (const char* file : {"/tokenizer.json", "/tokenizer.model"})
        if (std::filesystem::is_regular_file(path + file, ignored)) return path;
    return model_of_run(path);
}

std::string adapter_of_run(const std::string& path) {
    if (!is_folder(path)) return path;
    std::string adapter = file_of_run(path, best_adapter);
    if (adapter.empty() && file_of_run(path, best_model).empty())
        adapter = file_of_replaced(path, best_adapter);
    return adapter.empty() ? path : adapter;
}

}  // namespace linnet
