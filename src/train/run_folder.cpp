#include "train/run_folder.h"

#include <signal.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/signals.h"
#include "base/system.h"
#include "base/terminal.h"
#include "train/checkpoint.h"

namespace linnet {
namespace {

/// What a run makes in its folder. The checkpoints come first: where they are, the run is.
constexpr const char* run_names[] = {"checkpoints", "log.jsonl", "model.gguf",  "adapter.gguf",
                                     "last.gguf",   "hf",        "report.html", "config.json"};

/// In the folder of what is set aside, once all of it is there: whatever else the run's folder holds then is
/// of the run that is to replace it.
constexpr const char* all_aside = "complete";

/// What end_clean() removes: changed only while that is no handler.
std::vector<std::string> left_by_signal;

/// A handler: calls only what one may.
void end_clean(int signal_number) {
    for (const std::string& name : left_by_signal)
        if (::unlink(name.c_str()) != 0) ::rmdir(name.c_str());
    ::signal(signal_number, SIG_DFL);
    ::raise(signal_number);  // delivered when this handler returns
}

void set_handler(int signal_number, void (*from)(int), void (*to)(int)) {
    struct sigaction action = {};
    // What nohup and its like ignore, and what others handle by now, stays so.
    if (::sigaction(signal_number, nullptr, &action) != 0 || action.sa_handler != from) return;
    action = {};
    action.sa_handler = to;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(signal_number, &action, nullptr);
}

/// The name of a model, a checkpoint or a log in the folder; empty where there is none.
std::string found_run(const std::string& folder) {
    for (const char* name : run_names)
        if (name_taken(folder + "/" + name)) return name;
    for (const std::string& name : names_in(folder))
        if (name.ends_with(".gguf") || name.ends_with(".safetensors")) return name;
    return "";
}

void move(const std::string& from, const std::string& to) {
    if (int error = rename_file(from, to)) fail_errno(to, "", error);
}

/// The path, where there is a run to resume; asked before the folder would be made.
const std::string& checked(const std::string& path, RunStart start) {
    if (start == RunStart::resume && !is_folder(path))
        fail(Exit::diverged, path, "", "a folder of a run to resume",
             name_taken(path) ? "a file" : "no such folder");
    return path;
}

}  // namespace

LeftClean::LeftClean(const FolderLock& lock) {
    left_by_signal = lock.made();
    for (int signal_number : stop_signals) set_handler(signal_number, SIG_DFL, end_clean);
}

LeftClean::~LeftClean() {
    for (int signal_number : stop_signals) set_handler(signal_number, end_clean, SIG_DFL);
}

RunFolder::RunFolder(const std::string& path, RunStart start)
    : path_(checked(path, start)), lock_(path), clean_(lock_), start_(start) {
    const std::string checkpoints = path + "/checkpoints", aside = path + "/" + set_aside;
    // Whoever plants a link must not have files written, removed or moved where it leads.
    for (const char* name : {"checkpoints", "hf"})
        if (const std::string at = path + "/" + name; name_taken(at) && !is_real_folder(at))
            fail(Exit::io, at, "", "a folder", is_folder(at) ? "a symbolic link to one" : "something else");
    remove_uncommitted(path);
    remove_partial_checkpoints(checkpoints);
    if (name_taken(aside) && !is_real_folder(aside)) remove_all(aside);
    if (name_taken(aside)) {
        if (newest_checkpoint(checkpoints)) {
            settle();
        } else {
            restore();
            note("the run that " + path +
                 " held is put back: the one to replace it ended before its first checkpoint");
        }
    }
    if (start == RunStart::resume && !newest_checkpoint(checkpoints))
        fail(Exit::diverged, path, "", "a checkpoint to resume from", "none",
             found_run(path).empty() ? "without --resume a run begins" : "--overwrite begins anew");
    const std::string found = start == RunStart::fresh ? found_run(path) : "";
    if (!found.empty())
        fail(Exit::usage, path, "", "a folder without a model, a checkpoint or a log", found,
             newest_checkpoint(checkpoints) ? "--resume goes on with a run, --overwrite replaces it"
                                            : "--overwrite replaces it");
}

RunFolder::~RunFolder() {
    try {
        if (replaces()) restore();
    } catch (const std::exception&) {  // the next start tries again
    }
}

void RunFolder::begin() {
    if (start_ != RunStart::overwrite || found_run(path_).empty()) return;
    make_folders(path_ + "/" + set_aside);
    for (const char* name : run_names)
        if (name_taken(path_ + "/" + name)) move(path_ + "/" + name, path_ + "/" + set_aside + "/" + name);
    write_file(path_ + "/" + set_aside + "/" + all_aside, "", Existing::replace_name);
}

bool RunFolder::replaces() const {
    return name_taken(path_ + "/" + set_aside);
}

void RunFolder::settle() {
    remove_all(path_ + "/" + set_aside);  // what stays is removed by the next start
}

void RunFolder::restore() const {
    if (const std::string all = path_ + "/" + set_aside + "/" + all_aside; name_taken(all)) {
        for (const char* name : run_names) remove_all(path_ + "/" + name);
        remove_all(all);  // first: what is moved back now must stay, also where this is ended half-way
    }
    // Checkpoints last: beside them what stands aside is taken for a run that was replaced, and removed.
    for (std::size_t i = std::size(run_names); i-- > 0;) {
        const std::string name = run_names[i], kept = path_ + "/" + set_aside + "/" + name,
                          now = path_ + "/" + name;
        if (!name_taken(kept)) continue;
        remove_all(now);
        move(kept, now);
    }
    remove_all(path_ + "/" + set_aside);
}

}  // namespace linnet
