// What the programs that record llama.cpp's numbers have in common: its functions, declared here so that only
// its shared library is needed (any release; the parameter structs' sizes are those of v0.5.0), and the run
// over the files.
#pragma once
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

/// Tokens of one sequence, each with logits or embeddings.
inline batch batch_of(const std::vector<int32_t>& ids) {
    batch b = llama_batch_init(static_cast<int32_t>(ids.size()), 0, 1);
    b.n = static_cast<int32_t>(ids.size());
    for (int i = 0; i < b.n; i++)
        b.token[i] = ids[i], b.pos[i] = i, b.n_seq_id[i] = 1, b.seq_id[i][0] = 0, b.logits[i] = 1;
    return b;
}

/// "a" of "folder/a.gguf".
inline std::string name_of(std::string path) {
    path = path.substr(path.rfind('/') + 1);
    return path.substr(0, path.rfind('.'));
}

/// Calls record(name, model, context, first) for each file of argv[2...], with a context of so many tokens;
/// argv[1] is the folder of llama.cpp's libraries. False: it could not be recorded, which is said.
template <class Record>
void each_file(int argc, char** argv, uint32_t tokens, Record record) {
    llama_log_set(
        [](int level, const char* text, void*) {
            if (level >= 4) std::fputs(text, stderr);
        },
        nullptr);
    ggml_backend_load_all_from_path(argv[1]);
    llama_backend_init();
    bool first = true;
    for (int i = 2; i < argc; i++) {
        context_params p = llama_context_default_params();
        const uint32_t threads = 2;
        for (int offset : {0, 4, 8}) std::memcpy(p.raw + offset, &tokens, 4);
        for (int offset : {28, 32}) std::memcpy(p.raw + offset, &threads, 4);
        llama_model* m = llama_model_load_from_file(argv[i], llama_model_default_params());
        llama_context* c = m ? llama_init_from_model(m, p) : nullptr;
        if (c && record(name_of(argv[i]), m, c, first))
            first = false;
        else
            std::fprintf(stderr, "%s: not loaded\n", argv[i]);
        if (c) llama_free(c);
        if (m) llama_model_free(m);
    }
}
