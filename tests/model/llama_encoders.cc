// Records tests/model/encoders.json: what llama.cpp makes of the files of encoder_files.cpp. Not part of the build;
// as llama_logits.cc beside it:
//
//   g++ -O2 -std=c++17 tests/model/llama_encoders.cc -o build/llama_encoders -LDIR -l:libllama.v0.5.0.so
//       -l:libggml.v0.5.0.so -l:libggml-base.so -Wl,-rpath,DIR
//   mkdir build/encoders && LINNET_FAMILY_FILES=build/encoders build/tests -tc='encoders get*'
//   build/llama_encoders DIR build/encoders/*.gguf > tests/model/encoders.json
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
int32_t llama_model_n_embd(const llama_model*);
bool llama_model_has_encoder(const llama_model*);
bool llama_model_has_decoder(const llama_model*);
batch llama_batch_init(int32_t, int32_t, int32_t);
void llama_batch_free(batch);
int32_t llama_decode(llama_context*, batch);
int32_t llama_encode(llama_context*, batch);
float* llama_get_logits_ith(llama_context*, int32_t);
void llama_set_embeddings(llama_context*, bool);
float* llama_get_embeddings_seq(llama_context*, int32_t);
float* llama_get_embeddings_ith(llama_context*, int32_t);
}

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

static batch batch_of(const std::vector<int32_t>& ids) {
    batch b = llama_batch_init(static_cast<int32_t>(ids.size()), 0, 1);
    b.n = static_cast<int32_t>(ids.size());
    for (int i = 0; i < b.n; i++)
        b.token[i] = ids[i], b.pos[i] = i, b.n_seq_id[i] = 1, b.seq_id[i][0] = 0, b.logits[i] = 1;
    return b;
}

static void numbers(const char* name, const std::vector<float>& values) {
    std::printf("\"%s\":[", name);
    for (size_t i = 0; i < values.size(); i++) std::printf("%s%.5g", i ? "," : "", values[i]);
    std::printf("]");
}

static bool record(const char* path, bool first) {
    llama_model* m = llama_model_load_from_file(path, llama_model_default_params());
    if (!m) return false;
    context_params p = llama_context_default_params();
    const uint32_t context = 128, threads = 2;
    for (int offset : {0, 4, 8}) std::memcpy(p.raw + offset, &context, 4);
    for (int offset : {28, 32}) std::memcpy(p.raw + offset, &threads, 4);
    llama_context* c = llama_init_from_model(m, p);
    if (!c) return false;
    std::string name = path;
    name = name.substr(name.rfind('/') + 1), name = name.substr(0, name.rfind('.'));
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
    llama_free(c), llama_model_free(m);
    return true;
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    llama_log_set([](int level, const char* text, void*) { if (level >= 4) std::fputs(text, stderr); }, nullptr);
    ggml_backend_load_all_from_path(argv[1]);
    llama_backend_init();
    std::printf("{");
    bool first = true;
    for (int i = 2; i < argc; i++)
        if (record(argv[i], first))
            first = false;
        else
            std::fprintf(stderr, "%s: not loaded\n", argv[i]);
    std::printf("\n}\n");
    return 0;
}
