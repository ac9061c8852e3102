// Records tests/model/families.json: what llama.cpp makes of the family files. Not part of the build; with its
// shared library in DIR (any release; the parameter structs' sizes below are those of v0.5.0):
//
//   g++ -O2 -std=c++17 tests/model/llama_logits.cc -o build/llama_logits -LDIR -l:libllama.v0.5.0.so -l:libggml.v0.5.0.so
//       -l:libggml-base.so -Wl,-rpath,DIR
//   mkdir build/families && LINNET_FAMILY_FILES=build/families build/tests -tc='files of every family*'
//   build/llama_logits DIR build/families/*.gguf > tests/model/families.json
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

extern "C" {
struct llama_model;
struct llama_context;
struct llama_vocab;
struct model_params {
    unsigned char raw[80];
};
struct context_params {
    unsigned char raw[160];  // u32 n_ctx 0, n_batch 4, n_ubatch 8; i32 n_threads 28, n_threads_batch 32
};
struct batch {
    int32_t n;
    int32_t* token;
    float* embd;
    int32_t *pos, *n_seq_id;
    int32_t** seq_id;
    int8_t* logits;
};
model_params llama_model_default_params();
context_params llama_context_default_params();
void ggml_backend_load_all_from_path(const char*);
void llama_backend_init();
void llama_log_set(void (*)(int, const char*, void*), void*);
llama_model* llama_model_load_from_file(const char*, model_params);
llama_context* llama_init_from_model(llama_model*, context_params);
void llama_free(llama_context*);
void llama_model_free(llama_model*);
const llama_vocab* llama_model_get_vocab(const llama_model*);
int32_t llama_vocab_n_tokens(const llama_vocab*);
batch llama_batch_init(int32_t, int32_t, int32_t);
void llama_batch_free(batch);
int32_t llama_decode(llama_context*, batch);
float* llama_get_logits_ith(llama_context*, int32_t);
}

// As family_files.cpp has them.
static std::vector<int32_t> tokens() {
    std::vector<int32_t> t;
    for (int32_t i = 0; i < 110; i++) t.push_back(3 + (i * i * 7 + i * 31) % 250);
    return t;
}
static int32_t probe(int position, int k, int vocabulary) {
    return (position * 7 + k * 61) % vocabulary;
}

static bool record(const char* path, bool first) {
    llama_model* m = llama_model_load_from_file(path, llama_model_default_params());
    if (!m) return false;
    context_params p = llama_context_default_params();
    const uint32_t context = 256, threads = 2;
    for (int offset : {0, 4, 8}) std::memcpy(p.raw + offset, &context, 4);
    for (int offset : {28, 32}) std::memcpy(p.raw + offset, &threads, 4);
    llama_context* c = llama_init_from_model(m, p);
    if (!c) return false;
    std::vector<int32_t> t = tokens();
    batch b = llama_batch_init(static_cast<int32_t>(t.size()), 0, 1);
    b.n = static_cast<int32_t>(t.size());
    for (int i = 0; i < b.n; i++)
        b.token[i] = t[i], b.pos[i] = i, b.n_seq_id[i] = 1, b.seq_id[i][0] = 0, b.logits[i] = 1;
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
    std::string name = path;
    name = name.substr(name.rfind('/') + 1), name = name.substr(0, name.rfind('.'));
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
    llama_batch_free(b), llama_free(c), llama_model_free(m);
    return true;
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    llama_log_set([](int level, const char* text, void*) { if (level >= 4) std::fputs(text, stderr); }, nullptr);
    ggml_backend_load_all_from_path(argv[1]);
    llama_backend_init();
    std::printf("{\"tokens\":[");
    const char* comma = "";
    for (int32_t id : tokens()) std::printf("%s%d", comma, id), comma = ",";
    std::printf("],\"files\":{");
    bool first = true;
    for (int i = 2; i < argc; i++)
        if (record(argv[i], first))
            first = false;
        else
            std::fprintf(stderr, "%s: not loaded\n", argv[i]);
    std::printf("\n}}\n");
    return 0;
}
