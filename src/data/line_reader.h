// A file's lines, one after another, in memory that does not grow with the file.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "data/byte_source.h"

namespace linnet {

class LineReader {
  public:
    /// The file may be compressed; "-" is stdin. Error(Exit::input) for UTF-16 and UTF-32.
    explicit LineReader(const std::string& path);

    /// The next line without its end ("\n" or "\r\n"); false behind the last. Error(Exit::input) for a line
    /// of more than 1 MiB.
    bool next(std::string& line);
    std::uint64_t number() const { return number_; }  // of that line, from 1
    const std::string& path() const { return path_; }

  private:
    bool fill();

    std::string path_;
    std::unique_ptr<ByteSource> source_;
    std::string buffer_;
    std::size_t start_ = 0;
    std::uint64_t number_ = 0;
};

}  // namespace linnet
