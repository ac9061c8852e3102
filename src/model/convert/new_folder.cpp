#include "model/convert/new_folder.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/system.h"

namespace linnet {
namespace {

void remove_old(const std::string& path) {
    if (!remove_all(path)) fail(Exit::io, path, "", "a file that can be removed", "one that stays");
}

}  // namespace

bool NewFolder::Names::contains(std::string_view name) const {
    return name == last || is_weights(name) || std::find(others.begin(), others.end(), name) != others.end();
}

NewFolder::NewFolder(const std::string& path, Existing existing, const Names& names)
    : existing_(existing), names_(names), final_(path), new_(path + "/.linnet-new") {
    lock_ = std::make_unique<FolderLock>(path);
    refuse_existing();
    remove_all(new_);
    make_directories(new_);
}

NewFolder::~NewFolder() {
    remove_all(new_);
}

void NewFolder::refuse_existing() const {
    refuse_existing_in(final_, existing_, [&](std::string_view name) { return names_.contains(name); });
}

void NewFolder::finish() {
    refuse_existing();  // what came while this was made
    std::vector<std::string> made = names_in(new_);
    std::stable_partition(made.begin(), made.end(),
                          [&](const std::string& name) { return name != names_.last; });
    remove_old(final_ + "/" + names_.last);
    for (const std::string& old : names_in(final_)) {
        // A file goes when another takes its name, a folder does not.
        std::error_code ignored;
        const bool replaced = std::find(made.begin(), made.end(), old) != made.end() &&
                              !std::filesystem::is_directory(final_ + "/" + old, ignored);
        if (names_.contains(old) && !replaced) remove_old(final_ + "/" + old);
    }
    for (const std::string& name : made)
        if (int error = rename_file(new_ + "/" + name, final_ + "/" + name))
            fail_errno(final_ + "/" + name, "", error);
    sync_directory(final_);
}

}  // namespace linnet
