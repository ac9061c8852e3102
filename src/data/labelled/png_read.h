// PNG by libpng (ISO/IEC 15948), made 8 bits of grey or of red, green and blue.
#pragma once
#include "base/file.h"
#include "data/labelled/images.h"

namespace linnet {

/// The picture in a file that begins as a PNG does. Values are those in the file, whatever it says of gamma
/// and colour profiles; palettes become colours, 16 bits the nearest of 8, and what is transparent lies on
/// white. Error(Exit::input) where anything in the file is damaged, or a side longer than most_picture_side.
Pictures read_png(const MappedFile& file);

}  // namespace linnet
