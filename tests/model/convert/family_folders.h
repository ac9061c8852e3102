// Hugging Face folders of the weights in the files of family_files.h, written from what each family's class
// in transformers names its tensors and settings: not by the rows that linnet reads them by.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/family_files.h"

namespace linnet::test {

/// A tensor of f32.
struct PlainTensor {
    std::vector<std::int64_t> shape;
    std::vector<float> values;
};

struct PlainFolder {
    nlohmann::ordered_json config;
    std::map<std::string, PlainTensor> tensors;
};

/// family_files(), and some that were changed to what transformers' class has a key for.
std::vector<FamilyFile> folder_files();

/// The folder of the file at `gguf`, which write_family_file has made of `file`; no tensors where no class of
/// transformers has its settings.
PlainFolder family_folder(const FamilyFile& file, const std::string& gguf);

/// The logits behind the first 20 of family_tokens(), of any model's file or folder.
std::vector<float> logits_of(const std::string& path);

/// config.json, model.safetensors, a tokenizer.json of bytes.
void write_plain_folder(const PlainFolder& folder, const std::string& path);

/// Checks that the folder at `path`, written as a folder straight away, becomes the bytes of the folder that
/// it became by way of a GGUF file.
void check_straight(const std::string& path, const std::string& around);

}  // namespace linnet::test
