// A folder for targets whose parser opens files by their names; in memory where the machine has such a place.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace linnet::fuzz {

/// One for each target, as a static object: it goes away at the end of the process.
class Folder {
  public:
    Folder() {
        if (!mkdtemp(path_.data())) std::abort();
    }
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Folder(const Folder&) = delete;

    const std::string& path() const { return path_; }
    /// The path of `name`, which may lie in a folder of its own and holds these bytes from now on. A file
    /// that has them already is left alone: mutations change one of several.
    std::string with(const std::string& name, std::string_view bytes) {
        const std::string path = path_ + "/" + name;
        const auto [held, is_new] = held_.try_emplace(name, bytes);
        if (!is_new && held->second == bytes) return path;
        held->second = bytes;
        if (is_new) std::filesystem::create_directories(std::filesystem::path(path).parent_path());
        const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (file < 0 || ::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
            ::close(file) != 0)
            std::abort();
        return path;
    }
    /// The same, but nothing has the name where there are no bytes.
    void with_any(const std::string& name, std::string_view bytes) {
        if (!bytes.empty()) return void(with(name, bytes));
        if (held_.erase(name) > 0) ::unlink((path_ + "/" + name).c_str());
    }

  private:
    std::string path_ =
        std::filesystem::exists("/dev/shm") ? "/dev/shm/linnet-fuzz-XXXXXX" : "/tmp/linnet-fuzz-XXXXXX";
    std::map<std::string, std::string, std::less<>> held_;
};

}  // namespace linnet::fuzz
