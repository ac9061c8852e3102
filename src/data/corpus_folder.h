// Where a corpus is built: in its folder, or, where that holds a corpus to replace, in one beside it.
#pragma once
#include <memory>
#include <string>

#include "base/folder_lock.h"

namespace linnet {

enum class CorpusStart { fresh, resume, overwrite };

/// The folder of a corpus, locked. A new corpus that replaces one is built in the folder ".NAME.linnet-new"
/// beside it and takes its name at the end; files that are not a corpus's move along. Whatever ends the
/// process, the old corpus or the new one stands whole under its name.
class CorpusFolder {
  public:
    /// Makes the folder, locks it, mends what a killed process left. Error: Exit::usage where a fresh start
    /// finds a corpus, Exit::io for the system's refusals and where another process writes there.
    CorpusFolder(const std::string& folder, CorpusStart start);
    ~CorpusFolder();

    /// The folder to write into.
    const std::string& path() const { return path_; }
    bool beside() const { return path_ == beside_; }
    bool finished() const;  // resuming found a whole corpus
    /// The corpus at path(), whole and on the disk, takes its name. path() is the folder itself then.
    void finish();
    /// Removes what was written to path().
    void abandon() const;

  private:
    void clear_beside();
    std::string folder_, real_, beside_, path_;
    std::unique_ptr<FolderLock> lock_, beside_lock_;
};

}  // namespace linnet
