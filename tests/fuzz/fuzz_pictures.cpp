// libFuzzer: a byte of choices, then any bytes as a picture, or as IDX files of pictures and of their labels:
// pixels of the size that was asked for, or an Error.
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "data/labelled/images.h"
#include "folder.h"
#include "input.h"

namespace {

/// A PNG's chunks with checksums that fit: else a change of any byte would be found by its checksum alone.
std::string mended(std::string png) {
    auto* bytes = reinterpret_cast<Bytef*>(png.data());
    for (std::size_t at = 8; png.size() - std::min(at, png.size()) >= 12;) {
        const std::size_t length = std::size_t{bytes[at]} << 24 | std::size_t{bytes[at + 1]} << 16 |
                                   std::size_t{bytes[at + 2]} << 8 | bytes[at + 3];
        if (length > png.size() - at - 12) break;
        const auto sum = crc32(0, bytes + at + 4, static_cast<uInt>(length + 4));
        for (std::size_t i = 0; i < 4; i++)
            bytes[at + 8 + length + i] = static_cast<Bytef>(sum >> (24 - 8 * i));
        at += length + 12;
    }
    return png;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static fuzz::Folder folder;
    fuzz::Input input(data, size);
    const std::size_t choices = input.choice(16);
    const std::string picture(input.part());
    const std::string path = folder.with("pictures", choices & 8 ? mended(picture) : picture),
                      labels = folder.with("labels", input.part());
    try {
        const PictureShape wanted{4, 2, choices & 1 ? 3 : 1};
        const bool as_idx = choices & 4;
        const Pictures pictures =
            as_idx ? read_idx_pictures(path) : read_pictures_file(path, wanted, choices & 2);
        if (pictures.count() == 0 || pictures.pixels.size() % pictures.shape.bytes() != 0) std::abort();
        if (!as_idx && pictures.shape != wanted) std::abort();
        for (std::size_t i = 0; i < pictures.count(); i++) patches_of(pictures.shape, pictures[i], 1, true);
        if (as_idx && read_idx_labels(labels, pictures.count()).size() != pictures.count()) std::abort();
    } catch (const Error&) {
    }
    return 0;
}
