// libFuzzer: a line of any bytes has the field or has not, whatever room is behind it (near the end of a line
// strings are read byte by byte, before it 64 bytes at a time).
#include <cstdlib>

#include "data/json_line.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    const std::string line(reinterpret_cast<const char*>(data), size);
    std::string near, far;
    linnet::JsonFieldError near_error, far_error;
    const bool good = linnet::extract_json_field(line, "text", near, near_error);
    if (linnet::extract_json_field(line + std::string(200, ' '), "text", far, far_error) != good)
        std::abort();
    if (near != far || (good && near.size() > size)) std::abort();
    return 0;
}
