// Records tests/model/encoders.json: what llama.cpp makes of the files of encoder_files.cpp. Not part of the build;
// as llama_logits.cc beside it:
//
//   g++ -O2 -std=c++17 tests/model/llama_encoders.cc -o build/llama_encoders -LDIR -l:libllama.v0.5.0.so
//       -l:libggml.v0.5.0.so -l:libggml-base.so -Wl,-rpath,DIR
//   mkdir build/encoders && LINNET_FAMILY_FILES=build/encoders build/tests -tc='encoders get*'
//   build/llama_encoders DIR build/encoders/*.gguf > tests/model/encoders.json
#include <cmath>

#include "llama_api.h"

// As encoder_files.cpp has them.
static std::vector<int32_t> source() {
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 50; i++) ids.push_back(5 + (i * i * 7 + i * 31) % 60);
    return ids;
}
static std::vector<int32_t> answer() {
    std::vector<int32_t> ids{0};
    for (int32_t i = 0; i < 40; i++) ids.push_back(3 + (i * i * 11 + i * 17) % 240);
    return ids;
}

static void numbers(const char* name, const std::vector<float>& values) {
    std::printf("\"%s\":[", name);
    for (size_t i = 0; i < values.size(); i++) std::printf("%s%.5g", i ? "," : "", values[i]);
    std::printf("]");
}

static bool record(const std::string& name, llama_model* m, llama_context* c, bool first) {
    const bool decodes = llama_model_has_encoder(m) && llama_model_has_decoder(m);
    if (!decodes) llama_set_embeddings(c, true);
    // Encoders alone count as decoders there, but T5's.
    const bool encodes = llama_model_has_encoder(m);
    if (encodes ? llama_encode(c, batch_of(source())) : llama_decode(c, batch_of(source()))) return false;
    std::printf("%s\n\"%s\":{", first ? "" : ",", name.c_str());
    if (!decodes) {
        const float* e = llama_get_embeddings_seq(c, 0);
        const bool pooled = e != nullptr;
        if (!e) e = llama_get_embeddings_ith(c, static_cast<int>(source().size()) - 1);
        if (!e) return false;
        std::printf("\"pooled\":%s,", pooled ? "true" : "false");
        numbers("embedding", {e, e + llama_model_n_embd(m)});
    } else {
        if (llama_decode(c, batch_of(answer()))) return false;
        const int v = llama_vocab_n_tokens(llama_model_get_vocab(m));
        std::vector<float> all;
        double square = 0, sum = 0;
        const int n = static_cast<int>(answer().size());
        for (int i = 0; i < n; i++) {
            const float* l = llama_get_logits_ith(c, i);
            for (int k = 0; k < v; k++) sum += l[k], square += double(l[k]) * l[k];
            for (int k = 0; k < 8; k++) all.push_back(l[(i * 7 + k * 61) % v]);
        }
        const double count = double(n) * v;
        std::printf("\"deviation\":%.6g,", std::sqrt(square / count - sum / count * sum / count));
        numbers("logits", all);
    }
    std::printf("}");
    return true;
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    std::printf("{");
    each_file(argc, argv, 128, record);
    std::printf("\n}\n");
    return 0;
}
