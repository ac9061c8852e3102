#include "data/line_reader.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "data/utf8_check.h"

namespace linnet {
namespace {

constexpr std::size_t longest_line = largest_json;
constexpr std::size_t piece = std::size_t{1} << 16;

}  // namespace

LineReader::LineReader(const std::string& path) : path_(input_name(path)), source_(open_source(path)) {
    fill();
    refuse_wide_encoding(path_, buffer_);
    if (buffer_.starts_with(byte_order_mark)) start_ = byte_order_mark.size();
}

bool LineReader::fill() {
    buffer_.erase(0, std::exchange(start_, 0));
    const std::size_t old = buffer_.size();
    buffer_.resize(old + piece);
    buffer_.resize(old + source_->read(buffer_.data() + old, piece));
    return buffer_.size() > old;
}

bool LineReader::next(std::string& line) {
    std::size_t end = buffer_.find('\n', start_);
    while (end == std::string::npos) {
        const std::size_t searched = buffer_.size() - start_;
        if (searched > longest_line)
            fail_input(path_, "line " + std::to_string(number_ + 1), "at most 1 MiB per line", "more");
        if (!fill()) {
            if (searched == 0) return false;
            end = buffer_.size();
            break;
        }
        end = buffer_.find('\n', searched);
    }
    if (end - start_ > longest_line)
        fail_input(path_, "line " + std::to_string(number_ + 1), "at most 1 MiB per line", "more");
    line.assign(buffer_, start_, end - start_);
    if (line.ends_with('\r')) line.pop_back();
    start_ = std::min(end + 1, buffer_.size());
    number_++;
    return true;
}

}  // namespace linnet
