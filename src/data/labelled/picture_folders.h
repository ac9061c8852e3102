// One's own pictures: a folder with a folder for each class.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/labelled/images.h"
#include "data/skipped.h"

namespace linnet {

struct LabelledPictures : Skipped {
    Pictures pictures;
    std::vector<std::int32_t> labels;  // of each: its class
    std::vector<std::string> classes;  // the folders' names, sorted
};

/// The pictures (PNG, PGM, PPM) in folders with a folder for each class, by class and name; classes of the
/// same name are one. Names that begin with a dot are passed over, and `except`, a folder that is no part of
/// the data. Error(Exit::input) for what is neither, and as read_pictures_file; `skip_bad` counts files that
/// are no pictures, or bad ones, instead.
LabelledPictures read_picture_folders(const std::vector<std::string>& folders, const PictureShape& wanted,
                                      bool resize, bool skip_bad, const std::string& except = "");

}  // namespace linnet
