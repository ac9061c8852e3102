// What the command line says of a run.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "train/task/run_data.h"

namespace linnet {

struct TrainingOptions {
    std::string config_path;       // empty: chosen by the text's size; with resume, the checkpoint's own
    std::vector<std::string> set;  // "key=value"
    DataOptions data;              // with resume it may be left out
    std::string out;
    bool resume = false, overwrite = false, dry_run = false, json = false;
    bool plan = false;                  // for `linnet plan`: refuse a time that reading the data uses up
    bool verify = false;                // all checksums of a corpus folder, not a sample of them
    bool early_stop = true;             // end where the model is overfitting
    double epochs = 0;                  // end when all texts have been read so often; 0: train.steps
    std::optional<std::int64_t> steps;  // stop after this step; the schedule ends there too
    double time_limit_s = 0;            // 0: none
    int threads = 0;                    // 0: physical cores
    /// Continues `prompt` with the model as it is, for the log. The trainer knows no samplers.
    std::function<std::string(std::shared_ptr<const Model>, const std::string& prompt, std::int64_t tokens)>
        sample;
};

}  // namespace linnet
