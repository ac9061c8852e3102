// A folder of files that are one thing: a model, an adapter.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/folder_lock.h"

namespace linnet {

/// A folder that becomes such a thing: locked, its files written below it and renamed when all are there. The
/// file by which it is one comes last, and an old one goes first, so that it never speaks of other files.
/// What was there is set aside until then, and comes back where a rename fails.
class NewFolder {
  public:
    struct Names {
        std::string last;                           // the file by which it is one
        bool (*is_weights)(std::string_view name);  // what would be taken for its weights
        std::vector<std::string_view> others;       // what else is written
        std::string_view foreign = {};              // the file by which a folder is something else
        bool contains(std::string_view name) const;
    };
    /// Error(Exit::usage) where something of these names is there and is to be kept, and always where the
    /// folder is something else: it would become both. Error(Exit::io), also where a folder of these names
    /// holds more than a config.json. `names` outlives it.
    NewFolder(const std::string& path, Existing existing, const Names& names);
    ~NewFolder();
    NewFolder(const NewFolder&) = delete;
    NewFolder& operator=(const NewFolder&) = delete;
    /// Where to write the files.
    const std::string& path() const { return new_; }
    /// Gives them their names; what was there of `names` goes. Returns their bytes. Errors as the
    /// constructor's.
    std::uint64_t finish();

  private:
    void refuse_existing() const;
    std::vector<std::string> in_order(std::vector<std::string> names, bool last_first) const;
    void restore(const std::vector<std::string>& set_aside) const;
    Existing existing_;
    const Names& names_;
    std::string final_, new_, old_;
    std::unique_ptr<FolderLock> lock_;
};

}  // namespace linnet
