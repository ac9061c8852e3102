#include "data/labelled/picture_folders.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "data/utf8_check.h"
#include "text/unicode/unicode.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

struct Entry {
    std::string name, path;
    bool folder;
};

/// What a folder holds, sorted by name, but for what is hidden and `except`.
std::vector<Entry> entries_of(const std::string& folder, const std::string& except = "") {
    std::vector<Entry> all;
    if (!name_taken(folder)) fail_errno(folder, "", ENOENT);
    if (!is_folder(folder)) fail_input(folder, "", "a folder of pictures, as others are", "a file");
    for (const std::string& name : names_in(folder)) {
        if (name.starts_with('.')) continue;
        const std::string path = (fs::path(folder) / name).string();
        std::error_code ignored;
        if (!except.empty() && fs::equivalent(path, except, ignored)) continue;
        all.push_back({name, path, is_folder(path)});
    }
    return all;
}

/// A class's name goes into the model's metadata, which is UTF-8.
void check_name(const Entry& entry) {
    const std::size_t valid = valid_utf8_prefix(entry.name);
    if (valid < entry.name.size())
        fail_input(entry.path, "name", "UTF-8", utf8_fault_name(entry.name, valid));
}

// Not all that read folders of pictures have the option.
constexpr std::string_view way_out = "in training, --skip-bad passes over such files";

/// The files of each class. A file beside the classes' folders is bad; where there is none of them, the
/// folder is another one than it should be.
std::map<std::string, std::vector<std::string>> files_of(const std::vector<std::string>& folders,
                                                         bool skip_bad, const std::string& except,
                                                         Skipped& skipped) {
    std::map<std::string, std::vector<std::string>> classes;
    for (const std::string& folder : folders) {
        const std::vector<Entry> entries = entries_of(folder, except);
        const bool any = std::any_of(entries.begin(), entries.end(), [](const Entry& e) { return e.folder; });
        for (const Entry& entry : entries) {
            if (!entry.folder) {
                skipped.act_or_skip(
                    skip_bad && any,
                    [&] { fail_input(entry.path, "", "a folder for each class of pictures", "a file"); },
                    any ? way_out : "");
                continue;
            }
            check_name(entry);
            std::vector<std::string>& files = classes[entry.name];
            for (const Entry& file : entries_of(entry.path, except)) {
                if (file.folder) fail_input(file.path, "", "a picture", "a folder in a class's folder");
                files.push_back(file.path);
            }
        }
    }
    return classes;
}

}  // namespace

LabelledPictures read_picture_folders(const std::vector<std::string>& folders, const PictureShape& wanted,
                                      bool resize, bool skip_bad, const std::string& except) {
    LabelledPictures all;
    all.pictures.shape = wanted;
    for (const auto& [name, files] : files_of(folders, skip_bad, except, all)) {
        const std::size_t before = all.labels.size();
        const auto number = static_cast<std::int32_t>(all.classes.size());
        for (const std::string& file : files) {
            const auto take = [&] {
                const Pictures read = read_pictures_file(file, wanted, resize);
                all.pictures.pixels.insert(all.pictures.pixels.end(), read.pixels.begin(), read.pixels.end());
                all.labels.insert(all.labels.end(), read.count(), number);
            };
            all.act_or_skip(skip_bad, take, way_out);
        }
        if (all.labels.size() == before) fail_input(folders[0], name, "pictures of this class", "none");
        all.classes.push_back(name);
    }
    if (all.classes.empty()) fail_input(folders[0], "", "a folder for each class of pictures", "none");
    return all;
}

}  // namespace linnet
