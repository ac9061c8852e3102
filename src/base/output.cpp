#include "base/output.h"

#include <filesystem>
#include <system_error>

#include "base/terminal.h"

namespace linnet {

namespace fs = std::filesystem;

void prepare_output(const std::string& path, Existing existing) {
    refuse_existing(path, existing);
    const std::string parent = fs::path(path).parent_path().string();
    if (!parent.empty() && fs::path(path).has_filename()) make_directories(parent);
    AtomicFile probe(path, existing);
}

std::string written_line(const std::string& path) {
    std::error_code ignored;
    std::uintmax_t bytes = 0;
    auto add = [&](const fs::directory_entry& entry) {
        std::error_code error;
        const std::uintmax_t size = entry.is_regular_file(error) ? entry.file_size(error) : 0;
        if (!error) bytes += size;
    };
    if (fs::is_directory(path, ignored))
        for (fs::recursive_directory_iterator
                 at(path, fs::directory_options::skip_permission_denied, ignored),
             end;
             !ignored && at != end; at.increment(ignored))
            add(*at);
    else
        add(fs::directory_entry(path, ignored));
    return "wrote " + printable(path) + ", " + human_bytes(static_cast<double>(bytes));
}

void note_written(const std::string& path) {
    note(written_line(path));
}

}  // namespace linnet
