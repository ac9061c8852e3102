// libFuzzer: a byte of choices, then any bytes as a picture, or as IDX files of pictures and of their labels:
// pixels of the size that was asked for, or an Error.
#include <cstdlib>

#include "base/error.h"
#include "data/labelled/images.h"
#include "folder.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    static fuzz::Folder folder;
    fuzz::Input input(data, size);
    const std::size_t choices = input.choice(8);
    const std::string path = folder.with("pictures", input.part()),
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
