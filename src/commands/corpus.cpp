// linnet corpus: texts in, token shards out.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "base/output.h"
#include "base/signals.h"
#include "base/team.h"
#include "base/terminal.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/read_options.h"
#include "commands/text_input.h"
#include "data/corpus_builder.h"
#include "data/layouts.h"

namespace linnet {
namespace {

struct Options {
    CorpusOptions corpus;
    std::string tokenizer;
    std::int64_t shard_tokens = static_cast<std::int64_t>(CorpusOptions().shard_tokens);
    bool no_end_tokens = false, json = false;
};

std::string status_text(const CorpusOptions::Progress& progress, double seconds) {
    std::string line = progress.skipping ? "reading again  " : "tokenizing  ";
    if (progress.bytes_total > 0) {
        double share = static_cast<double>(progress.bytes_read) / static_cast<double>(progress.bytes_total);
        char percent[16];
        std::snprintf(percent, sizeof percent, "%3.0f%%  ", 100 * share);
        line += percent;
        if (share > 0.01 && seconds > 1) line += human_seconds(seconds * (1 - share) / share) + " left  ";
    }
    return line + human_count(static_cast<double>(progress.documents)) + " documents  " +
           human_bytes(static_cast<double>(progress.bytes)) + "  " +
           human_count(static_cast<double>(progress.tokens)) + " tokens  " +
           human_bytes(static_cast<double>(progress.bytes) / std::max(seconds, 1e-3)) + "/s";
}

struct Totals {
    std::uint64_t documents = 0, tokens = 0, shards = 0;
};

Totals totals_of(const CorpusIndex& index, std::string_view split) {
    Totals sum;
    for (const CorpusShard& shard : index.shards) {
        if (shard.split != split) continue;
        sum.documents += shard.documents;
        sum.tokens += shard.tokens;
        sum.shards++;
    }
    return sum;
}

void print_result(const Options& options, const CorpusIndex& index, double seconds, std::uint64_t bytes_now) {
    Totals train = totals_of(index, split_names[0]), validation = totals_of(index, split_names[1]);
    double tokens = static_cast<double>(index.tokens), bytes = static_cast<double>(index.bytes);
    double per_token = bytes / std::max(tokens, 1.0);
    double per_document = tokens / std::max(static_cast<double>(index.documents), 1.0);
    double speed = static_cast<double>(bytes_now) / 1e6 / std::max(seconds, 1e-9);
    if (options.json) {
        nlohmann::ordered_json out{{"documents", index.documents},
                                   {"validation_documents", validation.documents},
                                   {"skipped", index.skipped},
                                   {"bytes", index.bytes},
                                   {"tokens", index.tokens},
                                   {"validation_tokens", validation.tokens},
                                   {"bytes_per_token", per_token},
                                   {"tokens_per_document", per_document},
                                   {"shards", index.shards.size()},
                                   {"seconds", seconds},
                                   {"mb_per_s", speed}};
        write_stdout(out.dump() + "\n");
        return;
    }
    char line[512];
    std::snprintf(
        line, sizeof line,
        "documents  %llu (train %llu, validation %llu), %llu bad %s skipped\n"
        "text       %s, %.3f bytes per token\n"
        "tokens     %llu (train %llu, validation %llu), %.1f per document\n"
        "shards     %llu + %llu in ",
        static_cast<unsigned long long>(index.documents), static_cast<unsigned long long>(train.documents),
        static_cast<unsigned long long>(validation.documents), static_cast<unsigned long long>(index.skipped),
        index.skipped == 1 ? "one" : "ones", human_bytes(bytes).c_str(), per_token,
        static_cast<unsigned long long>(index.tokens), static_cast<unsigned long long>(train.tokens),
        static_cast<unsigned long long>(validation.tokens), per_document,
        static_cast<unsigned long long>(train.shards), static_cast<unsigned long long>(validation.shards));
    write_stdout(line + printable(options.corpus.folder));
    std::snprintf(line, sizeof line, "\ntime       %s, %.1f MB/s\n", human_seconds(seconds).c_str(), speed);
    write_stdout(line);
}

int run(Options options, const Globals& globals) {
    install_stop_signals();
    TokenizerPtr tokenizer = open_tokenizer(options.tokenizer);
    CorpusOptions& corpus = options.corpus;
    while (options.tokenizer.size() > 1 && options.tokenizer.ends_with('/')) options.tokenizer.pop_back();
    corpus.tokenizer_name = options.tokenizer.substr(options.tokenizer.rfind('/') + 1);
    finish_read_options(corpus.read);
    corpus.shard_tokens = static_cast<std::uint64_t>(options.shard_tokens);
    corpus.end_tokens = !options.no_end_tokens;
    corpus.threads = threads_or_cores(globals.threads);

    auto start = Clock::now();
    StatusLine status;
    std::uint64_t bytes_before = 0;
    corpus.progress = [&](const CorpusOptions::Progress& progress) {
        if (progress.skipping) bytes_before = progress.bytes;
        status.show(status_text(progress, seconds_since(start)));
        return stop_signal() != 0;
    };
    CorpusResult result = build_corpus(*tokenizer, corpus);
    status.clear();
    if (result.stopped) {
        note("stopped after " + human_count(static_cast<double>(result.index.documents)) + " documents (" +
             human_count(static_cast<double>(result.index.tokens)) + " tokens); --resume goes on");
        return 128 + stop_signal();
    }
    if (result.was_done) note(corpus.folder + " holds a finished corpus already");
    if (result.skipped.skipped > 0) note(result.skipped.told("document"));
    if (corpus.validation_fraction > 0 && totals_of(result.index, split_names[1]).tokens == 0)
        note(
            "no document fell into the validation split (it is chosen by each document's hash); --separator "
            "divides a "
            "text file into documents");
    if (!result.was_done) note_written(corpus.folder);
    print_result(options, result.index, seconds_since(start),
                 result.was_done ? 0 : result.index.bytes - bytes_before);
    return 0;
}

}  // namespace

Action add_corpus(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    CorpusOptions& corpus = options->corpus;
    add_tokenizer(app, options->tokenizer)->default_str("")->required();
    add_output(app, "-o,--out", corpus.folder, "folder for the shards and index.json")
        ->type_name("DIR")
        ->required();
    add_files(app, "FILE", corpus.inputs,
              "texts or folders of them (.txt, .jsonl, also .gz or .zst; - is stdin)")
        ->required();
    add_read_options(app, corpus.read);
    add_choice(
        app, "--format", corpus.layout, layout_names(),
        "layout of the files: llm.c's shards, nanoGPT's train.bin and val.bin, Megatron-LM's .bin and .idx");
    add_real(app, "--validation", corpus.validation_fraction, 0, 1,
             "share of the documents kept for validation");
    add_integer(app, "--shard-tokens", options->shard_tokens, 256, 2'147'483'647, "tokens per shard");
    add_choice(
        app, "--invalid", corpus.read.invalid, {"error", "replace", "keep"},
        "bytes that are no UTF-8: stop, put U+FFFD, or leave them (not in JSON lines, which must be UTF-8)");
    app.add_flag("--no-end-tokens", options->no_end_tokens, "no end-of-text token after each document");
    add_overwrite(app, corpus.overwrite, "replace the corpus in DIR")
        ->excludes(app.add_flag("--resume", corpus.resume, "go on with the unfinished corpus in DIR"));
    app.add_flag("--json", options->json, "the final statistics as one JSON object");
    return [options, &globals] { return run(*options, globals); };
}

}  // namespace linnet
