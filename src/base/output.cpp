#include "base/output.h"

#include <filesystem>
#include <system_error>

#include "base/terminal.h"

namespace linnet {

namespace fs = std::filesystem;

void prepare_output(const std::string& path, Existing existing) {
    refuse_existing(path, existing);
    const std::string parent = fs::path(path).parent_path().string();
    if (!parent.empty() && fs::path(path).has_filename()) make_folders(parent);
    AtomicFile probe(path, existing);
}

std::uint64_t bytes_at(const std::string& path) {
    const auto size_of = [](const fs::directory_entry& entry) -> std::uint64_t {
        std::error_code error;
        const std::uintmax_t size = entry.is_regular_file(error) ? entry.file_size(error) : 0;
        return error ? 0 : size;
    };
    std::error_code error;
    std::uint64_t bytes = size_of(fs::directory_entry(path, error));
    fs::recursive_directory_iterator at(path, fs::directory_options::skip_permission_denied, error), end;
    for (; !error && at != end; at.increment(error)) bytes += size_of(*at);
    return bytes;
}

std::string written_line(const std::string& path, std::optional<std::uint64_t> bytes) {
    return "wrote " + printable(path) + ", " +
           human_bytes(static_cast<double>(bytes ? *bytes : bytes_at(path)));
}

void note_written(const std::string& path, std::optional<std::uint64_t> bytes) {
    note(written_line(path, bytes));
}

}  // namespace linnet
