#include "model/convert/new_folder.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/output.h"
#include "base/system.h"

namespace linnet {
namespace {

void remove_left_over(const std::string& path) {
    if (!remove_all(path)) fail(Exit::io, path, "", "a folder that can be removed", "one that stays");
}

}  // namespace

bool NewFolder::Names::contains(std::string_view name) const {
    return name == last || is_weights(name) || std::find(others.begin(), others.end(), name) != others.end();
}

NewFolder::NewFolder(const std::string& path, Existing existing, const Names& names)
    : existing_(existing),
      names_(names),
      final_(path),
      new_(path + "/.linnet-new"),
      old_(path + "/.linnet-old") {
    lock_ = std::make_unique<FolderLock>(path);
    // A run that was killed between two renames has left what it had set aside.
    if (!name_taken(final_ + "/" + names_.last) && is_real_folder(old_)) restore(names_in(old_));
    refuse_existing();
    remove_left_over(old_);
    remove_left_over(new_);
    make_folders(new_);
}

NewFolder::~NewFolder() {
    remove_all(new_);
}

void NewFolder::refuse_existing() const {
    if (!names_.foreign.empty() && name_taken(final_ + "/" + std::string(names_.foreign)))
        fail(Exit::usage, final_, "", "a folder without " + std::string(names_.foreign), "one that has it",
             "a folder is a model or an adapter, not both");
    refuse_existing_in(final_, existing_, [&](std::string_view name) { return names_.contains(name); });
    for (const std::string& name : names_in(final_)) {
        std::error_code ignored;
        const std::string path = final_ + "/" + name;
        if (!names_.contains(name) || !std::filesystem::is_directory(path, ignored)) continue;
        const std::vector<std::string> inside = names_in(path);
        if (names_.is_weights(name) || inside != std::vector<std::string>(inside.size(), "config.json"))
            fail(Exit::io, path, "", "nothing but a model's files", "a folder with others");
    }
}

/// The file by which the folder is one, first or last.
std::vector<std::string> NewFolder::in_order(std::vector<std::string> names, bool last_first) const {
    std::stable_partition(names.begin(), names.end(),
                          [&](const std::string& name) { return (name == names_.last) == last_first; });
    return names;
}

void NewFolder::restore(const std::vector<std::string>& set_aside) const {
    for (const std::string& name : in_order(set_aside, false))
        rename_file(old_ + "/" + name, final_ + "/" + name);
}

std::uint64_t NewFolder::finish() {
    refuse_existing();  // what came while this was made
    const std::uint64_t bytes = bytes_at(new_);
    make_folders(old_);
    std::vector<std::string> set_aside, made;
    auto move = [this](const std::string& from, const std::string& to, const std::string& name,
                       std::vector<std::string>& moved) {
        if (int error = rename_file(from + "/" + name, to + "/" + name))
            fail_errno(final_ + "/" + name, "", error);
        moved.push_back(name);
    };
    try {
        for (const std::string& name : in_order(names_in(final_), true))
            if (names_.contains(name)) move(final_, old_, name, set_aside);
        for (const std::string& name : in_order(names_in(new_), false)) move(new_, final_, name, made);
    } catch (...) {  // as it was before
        for (const std::string& name : in_order(made, true)) remove_all(final_ + "/" + name);
        restore(set_aside);
        remove_all(old_);
        throw;
    }
    sync_folder(final_);
    remove_all(old_);
    return bytes;
}

}  // namespace linnet
