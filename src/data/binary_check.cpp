#include "data/binary_check.h"

#include <algorithm>

namespace linnet {
namespace {

using namespace std::string_view_literals;

struct Signature {
    std::size_t at;
    std::string_view bytes, name;
};

// From the formats' own specifications; gzip and Zstandard are read, so they are not here.
constexpr Signature signatures[] = {
    {0, "GGUF"sv, "a GGUF model file"},
    {8, "{\"__metadata__\""sv, "a safetensors model file"},
    {0, "PK\x03\x04"sv, "a ZIP archive (also .docx, .odt, .epub)"},
    {0, "%PDF-"sv, "a PDF file"},
    {0, "\x89PNG\r\n\x1a\n"sv, "a PNG picture"},
    {0, "\xFF\xD8\xFF"sv, "a JPEG picture"},
    {0, "GIF8"sv, "a GIF picture"},
    {0,
     "\x7F"
     "ELF"sv,
     "a program"},
    {0, "MZ\x90\0"sv, "a Windows program"},
    {0, "BZh"sv, "a bzip2 archive"},
    {0,
     "\xFD"
     "7zXZ\0"sv,
     "an xz archive"},
    {0, "7z\xBC\xAF\x27\x1C"sv, "a 7-Zip archive"},
    {0, "Rar!\x1A\x07"sv, "a RAR archive"},
    {257, "ustar"sv, "a tar archive"},
    {0, "SQLite format 3\0"sv, "an SQLite database"},
    {0, "PAR1"sv, "a Parquet file"},
    {0, "OggS"sv, "an Ogg sound or film"},
    {0, "ID3"sv, "an MP3 sound"},
    {4, "ftyp"sv, "an MP4 film"},
    {0, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"sv, "an old Microsoft Office file"},
};

}  // namespace

std::string_view binary_kind(std::string_view head) {
    for (const Signature& s : signatures)
        if (head.size() >= s.at && head.substr(s.at).starts_with(s.bytes)) return s.name;
    head = head.substr(0, 4096);
    auto zeros = static_cast<std::size_t>(std::count(head.begin(), head.end(), '\0'));
    return zeros > 2 && zeros * 100 > head.size() ? "a binary file"sv : ""sv;  // a stray zero is still text
}

}  // namespace linnet
