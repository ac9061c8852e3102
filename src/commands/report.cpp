// linnet report: several training runs over each other, on one page.
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/output.h"
#include "base/signals.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "train/report/runs.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

struct Options {
    std::vector<std::string> runs;
    std::string out;
    bool overwrite = false;
};

/// A run's name and its log's file.
using Found = std::pair<std::string, MappedFile>;

/// A run's folder, or its log. Runs are named after their folders, as far as that tells them apart.
Found open(const std::string& path) {
    std::error_code ignored;
    const std::string log = is_folder(path) ? path + "/log.jsonl" : path;
    if (is_folder(path) && !fs::exists(log, ignored))
        fail_input(path, "", "a folder that `linnet train` made, with log.jsonl", "none");
    Found found{last_name(log + "/.."), MappedFile(log)};
    if (found.second.text().find("\"event\":") == std::string_view::npos)
        fail_input(log, "", "a log of a training run", "a file without a record of one");
    return found;
}

int run(const Options& options) {
    prepare_output(options.out, existing(options.overwrite));
    std::vector<Found> found;
    for (const std::string& path : options.runs) found.push_back(open(path));
    std::error_code ignored;
    for (const auto& [name, file] : found)
        if (fs::equivalent(file.path(), options.out, ignored))
            usage_error("--out", "another file than the logs", quoted(options.out));
    std::vector<NamedLog> logs;
    for (const auto& [name, file] : found) logs.push_back({name, file.text()});
    for (std::size_t i = 0; i < logs.size(); i++)  // those of one name by their paths
        for (std::size_t j = 0; j < logs.size(); j++)
            if (i != j && found[i].first == found[j].first) logs[i].name = options.runs[i];
    install_stop_signals();  // the file is written whole
    write_file(options.out, runs_report_html(logs), existing(options.overwrite));
    note_written(options.out);
    return 0;
}

}  // namespace

Action add_report(CLI::App& app, const Globals&) {
    auto options = std::make_shared<Options>();
    app.add_option("RUN", options->runs, "folders that `linnet train` made, or their log.jsonl")
        ->type_name("PATH")
        ->required();
    add_output(app, "-o,--out", options->out, "the page to write")->required();
    add_overwrite(app, options->overwrite);
    return [options] { return run(*options); };
}

}  // namespace linnet
