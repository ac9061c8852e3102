#include "train/run_model.h"

#include <filesystem>

#include "train/checkpoint.h"

namespace linnet {

std::string model_of_run(const std::string& path) {
    std::error_code ignored;
    if (path.empty() || !std::filesystem::is_directory(path, ignored)) return path;
    std::string best = path + "/" + best_model;
    if (std::filesystem::exists(best, ignored)) return best;
    auto newest = newest_checkpoint(path + "/checkpoints");
    return newest ? *newest + "/model.gguf" : path;
}

}  // namespace linnet
