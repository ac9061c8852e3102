// linnet corpus: documents in, token shards (or another program's token files) and index.json out.
//
//   documents in batches of a quarter MiB, read in order  →  encoded, several at a time  →  written in order
//
// Output depends on the documents and the options alone. The folder holds progress.json while work is
// unfinished: a batch number and where each split stands after it. A resumed run reads the input again from
// its beginning, checks that it is the same up to that batch (a running hash, and as many documents and bytes
// as were noted), and encodes from there.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "data/corpus_index.h"
#include "data/document_reader.h"
#include "data/skipped.h"
#include "text/tokenizer.h"

namespace linnet {

struct CorpusOptions {
    std::vector<std::string> inputs;  // files, folders, "-"
    std::string folder;
    std::string tokenizer_name;  // for index.json
    ReadOptions read;
    double validation_fraction = 0.01;  // of the documents, chosen by the hash of each one's text
    std::uint64_t shard_tokens = std::uint64_t{1} << 25;
    bool end_tokens = true;       // the end-of-text token after every document
    std::string layout = "llmc";  // of the files (layouts.h)
    int threads = 1;
    bool resume = false, overwrite = false;
    double checkpoint_seconds = 20;

    struct Progress {
        std::uint64_t bytes_read = 0, bytes_total = 0;  // of the input files
        std::uint64_t documents = 0, bytes = 0, tokens = 0;
        bool skipping = false;  // reading again what an earlier run has written
    };
    /// Called after every batch; true asks to stop (a checkpoint is written first).
    std::function<bool(const Progress&)> progress;  // from any thread, one call at a time
};

struct CorpusResult {
    CorpusIndex index;
    bool stopped = false;   // by progress(); resume goes on
    bool was_done = false;  // resume found a finished corpus
    Skipped skipped;        // of documents; none where it was
};

/// Throws Error: Exit::usage for a folder in use (without resume or overwrite), Exit::diverged where resume
/// is refused.
CorpusResult build_corpus(const Tokenizer& tokenizer, const CorpusOptions& options);

}  // namespace linnet
