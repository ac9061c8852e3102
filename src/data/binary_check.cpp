#include "data/binary_check.h"

#include <algorithm>

#include "text/unicode/unicode.h"

namespace linnet {
namespace {

using namespace std::string_view_literals;

struct Signature {
    std::size_t at;
    std::string_view bytes, name;
    bool letters = false;  // a text may begin so, too ("ID3 is an algorithm")
};

// From the formats' own specifications; gzip and Zstandard are read, so they are not here.
constexpr Signature signatures[] = {
    {0, "GGUF"sv, "a GGUF model file", true},
    {8, "{\"__metadata__\""sv, "a safetensors model file"},
    {0, "PK\x03\x04"sv, "a ZIP archive (also .docx, .odt, .epub)"},
    {0, "%PDF-"sv, "a PDF file"},
    {0, "\x89PNG\r\n\x1a\n"sv, "a PNG picture"},
    {0, "\xFF\xD8\xFF"sv, "a JPEG picture"},
    {0, "GIF8"sv, "a GIF picture", true},
    {0, "\0\0\x08\x03"sv, "an IDX file of pictures"},
    {0, "\0\0\x08\x01"sv, "an IDX file of labels"},
    {0,
     "\x7F"
     "ELF"sv,
     "a program"},
    {0, "MZ\x90\0"sv, "a Windows program"},
    {4, "1AY&SY"sv, "a bzip2 archive", true},
    {0,
     "\xFD"
     "7zXZ\0"sv,
     "an xz archive"},
    {0, "7z\xBC\xAF\x27\x1C"sv, "a 7-Zip archive"},
    {0, "Rar!\x1A\x07"sv, "a RAR archive"},
    {257, "ustar"sv, "a tar archive"},
    {0, "SQLite format 3\0"sv, "an SQLite database"},
    {0, "PAR1"sv, "a Parquet file", true},
    {0, "OggS"sv, "an Ogg sound or film", true},
    {0, "ID3"sv, "an MP3 sound", true},
    {4, "ftyp"sv, "an MP4 film", true},
    {0, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"sv, "an old Microsoft Office file"},
};

/// Whether a head of Netpbm's binary pictures begins here: the letter and the digit, then width, height and
/// the largest value, with comments between them. That is text, and small pictures may be text as a whole.
bool is_netpbm(std::string_view head) {
    if (!head.starts_with("P5") && !head.starts_with("P6")) return false;
    std::size_t at = 2;
    for (int numbers = 0; numbers < 3; numbers++) {
        const std::size_t before = at;
        while (at < head.size() && (head[at] == '#' || " \t\r\n"sv.find(head[at]) != std::string_view::npos))
            at = head[at] == '#' ? std::min(head.find('\n', at), head.size()) : at + 1;
        const std::size_t digits = at;
        while (at < head.size() && head[at] >= '0' && head[at] <= '9') at++;
        if (digits == before || at == digits) return false;
    }
    return true;
}

}  // namespace

std::string_view binary_kind(std::string_view head) {
    const std::string_view begin = head.substr(0, 4096);
    const auto zeros = static_cast<std::size_t>(std::count(begin.begin(), begin.end(), '\0'));
    const std::size_t valid = valid_utf8_prefix(begin);
    const bool cut = begin.size() == 4096 && valid + 4 > begin.size();  // a character, at the end
    const bool text = zeros == 0 && (valid == begin.size() || cut);
    for (const Signature& s : signatures)
        if (!(s.letters && text) && head.size() >= s.at && head.substr(s.at).starts_with(s.bytes))
            return s.name;
    if (is_netpbm(head)) return head[1] == '5' ? "a PGM picture"sv : "a PPM picture"sv;
    return zeros > 2 && zeros * 100 > begin.size() ? "a binary file"sv : ""sv;  // a stray zero is still text
}

}  // namespace linnet
