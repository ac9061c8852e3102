// Small random encoders and encoder–decoders, written from what GGUF's writers write for them: not by the
// rows that linnet reads them by.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace linnet::test {

/// One file. Letters as in model/config/config.h; `decoder`: blocks of the decoder, 0: as many.
struct EncoderFile {
    std::string name, arch;
    std::int64_t layers = 3, width = 64, heads = 4, head = 0, ffn = 96, context = 128, decoder = 0;
    bool gated = false, tied = true, fused = false;
    std::uint32_t pooling = 1;
    float deviation = 1.5F;  // of products, times the root of their inputs
};

const std::vector<EncoderFile>& encoder_files();
/// The one of this name; throws where there is none.
const EncoderFile& encoder_file(std::string_view name);
void write_encoder_file(const EncoderFile& file, const std::string& path);

/// The tokens that are given to every model: of a source, and of an answer (behind the start token 0).
std::vector<std::int32_t> source_tokens();
std::vector<std::int32_t> answer_tokens();

}  // namespace linnet::test
