#include "data/corpus_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/system.h"
#include "data/corpus_index.h"
#include "data/corpus_progress.h"
#include "data/layouts.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

/// train_000000.bin and the like.
bool is_shard(std::string_view name) {
    const auto& layouts = corpus_layouts();
    return std::any_of(layouts.begin(), layouts.end(), [&](const CorpusLayout& l) { return l.owns(name); });
}

bool is_corpus(std::string_view name) {
    return is_shard(name) || name == corpus_index_name || name == corpus_progress_name ||
           name == corpus_tokenizer;
}

/// The names that `linnet corpus` makes; all else in the folder is the user's.
bool is_ours(std::string_view name) {
    return is_corpus(name) || name.starts_with(".linnet");
}

void remove_corpus(const std::string& folder, bool tokenizer) {
    // First what says that there is a corpus.
    for (const char* name : {corpus_index_name, corpus_progress_name}) remove_all(folder + "/" + name);
    for (const std::string& name : names_in(folder))
        if (is_ours(name) && !name.ends_with(".lock") && (tokenizer || name != corpus_tokenizer))
            remove_all(folder + "/" + name);
}

std::string real_path(const std::string& path) {
    std::error_code error;
    std::string real = fs::canonical(path, error).string();
    if (error) fail_errno(path, "", error.value());
    return real;
}

bool same_file_system(const std::string& a, const std::string& b) {
    struct stat of_a {
    }, of_b{};
    return ::stat(a.c_str(), &of_a) == 0 && ::stat(b.c_str(), &of_b) == 0 && of_a.st_dev == of_b.st_dev;
}

}  // namespace

CorpusFolder::CorpusFolder(const std::string& folder, CorpusStart start) : folder_(folder), path_(folder) {
    std::error_code ignored;
    fs::path at = fs::weakly_canonical(fs::absolute(folder, ignored), ignored);
    if (!at.has_filename()) at = at.parent_path();  // named with a slash at its end
    const std::string whole = at.string();
    const fs::path name = at.filename(), parent = at.parent_path();
    const std::string old = (parent / ("." + name.string() + ".linnet-old")).string();
    beside_ = (parent / ("." + name.string() + ".linnet-new")).string();
    if (!name.empty() && !name_taken(whole) &&
        is_real_folder(old))  // broken off between finish()'s two renames
        if (int error = rename_file(old, whole)) fail_errno(folder, "", error);
    if (!name.empty() && name_taken(whole) && is_real_folder(old) && !name_taken(beside_))
        // Broken off before the third: what is the user's in the old one goes over, and it goes.
        if (int error = rename_file(old, beside_)) fail_errno(folder, "", error);
    if (name_taken(beside_) && !is_real_folder(beside_))
        fail(Exit::io, beside_, "", "a folder", "a symbolic link or a file");
    lock_ = std::make_unique<FolderLock>(folder);
    real_ = real_path(folder);
    bool unfinished_beside = false;
    if (name_taken(beside_)) {
        CorpusProgress progress;
        beside_lock_ = std::make_unique<FolderLock>(beside_);
        unfinished_beside =
            start != CorpusStart::overwrite && read_corpus_progress(beside_, progress) && progress.replaces;
        if (!unfinished_beside) clear_beside();
    }
    // The index is written last: where it is, the corpus is whole.
    const bool done = name_taken(folder + "/" + corpus_index_name);
    const bool begun = !done && name_taken(folder + "/" + corpus_progress_name);
    if (start == CorpusStart::fresh && (done || begun || unfinished_beside))
        fail(Exit::usage, folder, "", "a new or empty folder",
             done ? "one with a corpus" : "one with an unfinished corpus",
             done && !unfinished_beside ? "--overwrite replaces it"
                                        : "--resume goes on with it, --overwrite begins again");
    // A corpus that was begun has one of these two; shards without either are not of linnet's making.
    if (start == CorpusStart::fresh ||
        (start == CorpusStart::resume && !done && !begun && !unfinished_beside))
        for (const std::string& found : names_in(folder))
            if (is_shard(found))
                fail(Exit::usage, folder, "", "a new or empty folder", found, "--overwrite replaces it");
    if (start == CorpusStart::resume && unfinished_beside) path_ = beside_;
    if (start == CorpusStart::resume && done) {
        read_corpus_index(folder);  // else the folder is another program's
        remove_corpus_progress(folder);
    }
    const std::vector<std::string> names = names_in(folder);
    if (start == CorpusStart::overwrite && std::any_of(names.begin(), names.end(), is_corpus)) {
        if (!same_file_system(parent.string(), real_))
            fail(Exit::io, folder, "", "a folder that another can be exchanged for", "a mount point",
                 "give a folder below it");
        beside_lock_ = std::make_unique<FolderLock>(beside_);
        path_ = beside_;
    }
    remove_uncommitted(path_);
}

CorpusFolder::~CorpusFolder() {
    beside_lock_.reset();
    ::rmdir(beside_.c_str());  // where nothing is left in it
}

bool CorpusFolder::finished() const {
    return !beside() && name_taken(folder_ + "/" + corpus_index_name);
}

void CorpusFolder::abandon() const {
    remove_corpus(path_, beside());
}

/// Ends what a killed process began: beside the folder stands the old corpus, from which the user's files
/// have not all been moved, or a new one that nobody wants any more.
void CorpusFolder::clear_beside() {
    for (const std::string& name : names_in(beside_))
        if (!is_ours(name) && !name_taken(real_ + "/" + name))
            if (int error = rename_file(beside_ + "/" + name, real_ + "/" + name))
                fail_errno(folder_ + "/" + name, "", error);
    remove_corpus(beside_, true);
    beside_lock_.reset();
    ::rmdir(beside_.c_str());
}

void CorpusFolder::finish() {
    if (!beside()) return;
    if (!exchange_names(beside_, real_)) {
        const std::string old = beside_.substr(0, beside_.size() - 3) + "old";
        if (int error = rename_file(real_, old)) fail_errno(folder_, "", error);
        if (int error = rename_file(beside_, real_)) fail_errno(folder_, "", error);
        if (int error = rename_file(old, beside_)) fail_errno(folder_, "", error);
    }
    sync_folder(fs::path(real_).parent_path().string());
    path_ = real_;             // folder_ may be ".", which stands for the old one still
    lock_.swap(beside_lock_);  // each follows its folder
    clear_beside();
}

}  // namespace linnet
