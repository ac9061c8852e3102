// A model that targets read something else for.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "folder.h"
#include "model/model.h"

namespace linnet::fuzz {

/// llama2.c's tokenizer.bin of eight letters.
inline std::string eight_letters() {
    std::string words(4, '\1');
    for (char token = 0; token < 8; token++) {
        const float score = 0;
        const std::int32_t length = 1;
        words.append(reinterpret_cast<const char*>(&score), sizeof score);
        words.append(reinterpret_cast<const char*>(&length), sizeof length);
        words += static_cast<char>('a' + token);
    }
    return words;
}

/// A LLaMA of one block, eight wide, with those letters; as a checkpoint of llama2.c, version 0.
inline std::shared_ptr<const Model> small_model() {
    static Folder folder;
    static const std::shared_ptr<const Model> model = [] {
        // Width, inner width, blocks, heads, their keys' and values', vocabulary, context.
        const std::int32_t header[] = {8, 8, 1, 2, 1, 8, 8};
        constexpr int matrices = 6 * 8 * 8 + 2 * 4 * 8, norms = 3 * 8, turns = 8 * 4;
        std::string bytes(reinterpret_cast<const char*>(header), sizeof header);
        for (int i = 0; i < matrices + norms + turns; i++) {
            const float value = 0.1f * static_cast<float>(i % 7 - 3);
            bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
        }
        folder.with("tokenizer.bin", eight_letters());
        return Model::open(folder.with("m.bin", bytes));
    }();
    return model;
}

}  // namespace linnet::fuzz
