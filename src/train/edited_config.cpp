#include "train/edited_config.h"

#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/system.h"
#include "base/terminal.h"

namespace linnet {
namespace {

/// Whether a run with this log wrote that config: at its start, at a resume, or when its steps were planned
/// anew.
bool wrote_config(const std::string& log, const nlohmann::json& found) {
    nlohmann::json own;
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
        const bool plan = line.starts_with("{\"event\":\"plan\"");
        if (!plan && !line.starts_with("{\"event\":\"start\"") && !line.starts_with("{\"event\":\"resume\""))
            continue;
        const nlohmann::json record = parse_or_discard(line);
        if (!record.is_object()) continue;  // cut by a kill
        if (record.contains("config")) own = record["config"];
        if (plan && own.is_object() && own.contains("train") && own["train"].is_object())
            own["train"]["steps"] = record.value("steps", nlohmann::json());
        if (own == found) return true;
    }
    return false;
}

}  // namespace

void keep_edited_config(const TrainingOptions& options, const RunSetup& setup) {
    const std::string path = options.out + "/config.json";
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored) ||
        std::filesystem::equivalent(path, options.config_path, ignored))
        return;
    const std::string log = options.out + "/log.jsonl";
    const nlohmann::json found = parse_or_discard(read_file(path));
    if (found == setup.checkpoint.config ||
        (std::filesystem::exists(log, ignored) && wrote_config(read_file(log), found)))
        return;
    std::string kept = options.out + "/config.edited.json";
    for (int n = 2; name_taken(kept); n++)
        kept = options.out + "/config.edited-" + std::to_string(n) + ".json";
    if (int error = rename_file(path, kept)) fail_errno(kept, "", error);
    note(path + " was edited: the run goes on with its own settings; what you wrote is kept as " + kept +
         " (`linnet train " + kept + " --out " + options.out +
         " --resume` goes on with it where the model and its batches are the same; --data DATA --out ANOTHER "
         "starts "
         "a run with it)");
}

}  // namespace linnet
