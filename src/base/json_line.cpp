#include "base/json_line.h"

#include "base/utf8.h"

namespace linnet {

std::string printable_json(std::string json) {
    if (json.find_first_of("\x7F\xC2") == json.npos) return json;
    static const char digits[] = "0123456789abcdef";
    std::string out;
    const char *p = json.data(), *end = p + json.size();
    while (p < end) {
        const Char c = decode_utf8(p, end);
        if (c.code >= 0x7F && c.code < 0xA0)
            ((out += "\\u00") += digits[c.code >> 4]) += digits[c.code & 15];
        else
            out.append(p, c.size);
        p += c.size;
    }
    return out;
}

}  // namespace linnet
