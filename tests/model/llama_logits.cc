// Records tests/model/families.json: what llama.cpp makes of the family files. Not part of the build; with its
// shared library in DIR:
//
//   g++ -O2 -std=c++17 tests/model/llama_logits.cc -o build/llama_logits -LDIR -l:libllama.v0.5.0.so -l:libggml.v0.5.0.so
//       -l:libggml-base.so -Wl,-rpath,DIR
//   mkdir build/families && LINNET_FAMILY_FILES=build/families build/tests -tc='files of every family*'
//   build/llama_logits DIR build/families/*.gguf > tests/model/families.json
#include <algorithm>
#include <cmath>

#include "llama_api.h"

// As family_files.cpp has them.
static std::vector<int32_t> tokens() {
    std::vector<int32_t> t;
    for (int32_t i = 0; i < 110; i++) t.push_back(3 + (i * i * 7 + i * 31) % 250);
    return t;
}
static int32_t probe(int position, int k, int vocabulary) {
    return (position * 7 + k * 61) % vocabulary;
}

static bool record(const std::string& name, llama_model* m, llama_context* c, bool first) {
    batch b = batch_of(tokens());
    if (llama_decode(c, b)) return false;
    int v = llama_vocab_n_tokens(llama_model_get_vocab(m));
    double deviation = 0;
    for (int i = 0; i < b.n; i++) {
        const float* l = llama_get_logits_ith(c, i);
        double mean = 0;
        for (int k = 0; k < v; k++) mean += l[k] / v;
        for (int k = 0; k < v; k++) deviation += (l[k] - mean) * (l[k] - mean) / v / b.n;
    }
    deviation = std::sqrt(deviation);
    std::printf("%s\n\"%s\":{\"deviation\":%.6g,\"top\":[", first ? "" : ",", name.c_str(), deviation);
    for (int i = 0; i < b.n; i++) {
        const float* l = llama_get_logits_ith(c, i);
        std::printf("%s%d", i ? "," : "", static_cast<int>(std::max_element(l, l + v) - l));
    }
    std::printf("],\"logits\":[");
    for (int i = 0; i < b.n; i++)
        for (int k = 0; k < 4; k++)
            std::printf("%s%ld", i + k ? "," : "",
                        std::lround(1000 * llama_get_logits_ith(c, i)[probe(i, k, v)] / deviation));
    std::printf("]}");
    llama_batch_free(b);
    return true;
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    std::printf("{\"tokens\":[");
    const char* comma = "";
    for (int32_t id : tokens()) std::printf("%s%d", comma, id), comma = ",";
    std::printf("],\"files\":{");
    each_file(argc, argv, 256, record);
    std::printf("\n}}\n");
    return 0;
}
