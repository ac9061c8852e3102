// The right to write into a folder: one process has it at a time.
#pragma once
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace linnet {

/// Holds `folder`, which is made (with its parents) where it is missing, until the object or the process
/// ends: flock() on the file ".linnet.lock" in it, which holds the process's number and goes away with the
/// object. One that a killed process left is nobody's. Folders that the lock made and that are still empty go
/// too. Error(Exit::io) names the process that holds the folder, or what the system says. Where the file
/// system knows no locks, a note says so and work goes on.
class FolderLock {
  public:
    explicit FolderLock(const std::string& folder);
    ~FolderLock();
    FolderLock(const FolderLock&) = delete;
    FolderLock& operator=(const FolderLock&) = delete;
    /// What goes away with the object, in that order: the file, then folders, where they are still empty.
    std::vector<std::string> made() const;

  private:
    void acquire();
    std::string folder_;
    std::vector<std::string> made_;  // outermost first
    // The folder by its descriptor: it may be renamed while it is held.
    Descriptor directory_, file_;
};

}  // namespace linnet
