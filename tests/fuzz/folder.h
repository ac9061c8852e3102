// A folder for targets whose parser opens a file by its name; in memory where the machine has such a place.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace linnet::fuzz {

/// FOLDER, which holds `name` with these bytes. One for the life of the process; removed at its end.
inline const std::string& folder_with(const char* name, const std::uint8_t* data, std::size_t size) {
    struct Folder {
        std::string path =
            std::filesystem::exists("/dev/shm") ? "/dev/shm/linnet-fuzz-XXXXXX" : "/tmp/linnet-fuzz-XXXXXX";
        Folder() {
            if (!mkdtemp(path.data())) std::abort();
        }
        ~Folder() {
            std::error_code ignored;
            std::filesystem::remove_all(path, ignored);
        }
    };
    static const Folder folder;
    std::FILE* file = std::fopen((folder.path + "/" + name).c_str(), "wb");
    if (!file || std::fwrite(data, 1, size, file) != size || std::fclose(file) != 0) std::abort();
    return folder.path;
}

}  // namespace linnet::fuzz
