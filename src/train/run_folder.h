// The folder of a training run: who may write into it, and what becomes of a run that is in it already.
#pragma once
#include <string>
#include <vector>

#include "base/folder_lock.h"

namespace linnet {

/// In a run's folder: the run that is being replaced, until the new one has a checkpoint.
inline constexpr const char* set_aside = ".replaced";

/// What a run may do with what it finds in its folder.
enum class RunStart {
    fresh,      // refuse (Exit::usage) where the folder holds a model, a checkpoint or a log
    resume,     // go on: refuse (Exit::diverged) where there is no checkpoint
    overwrite,  // start over: begin() sets the old run aside, settle() removes it
};

/// While it lives, SIGINT, SIGTERM and SIGHUP end the process as they would have, and take away what a lock
/// made, whatever that process is at. install_stop_signals() ends that.
class LeftClean {
  public:
    explicit LeftClean(const FolderLock& lock);
    ~LeftClean();
    LeftClean(const LeftClean&) = delete;
};

/// The folder, locked for as long as the object lives. A signal that ends the process while a run is prepared
/// leaves nothing behind that was not there before.
class RunFolder {
  public:
    /// Makes the folder (and its parents), locks it, and mends what a killed run left in it. Error(Exit::io)
    /// where another process writes into it.
    RunFolder(const std::string& path, RunStart start);
    /// Puts the old run back where the new one has not come as far as settle().
    ~RunFolder();

    /// To be called before the run's first file is written. An old run's files move into the folder
    /// `set_aside` and stand there until the new run has a checkpoint.
    void begin();
    /// Whether an old run stands aside.
    bool replaces() const;
    /// To be called when a checkpoint of this run stands.
    void settle();

  private:
    void restore() const;
    std::string path_;
    FolderLock lock_;
    LeftClean clean_;
    RunStart start_;
};

}  // namespace linnet
