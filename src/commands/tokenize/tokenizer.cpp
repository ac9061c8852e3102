// linnet tokenizer: train one, convert one, compare two.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_line.h"
#include "base/output.h"
#include "base/signals.h"
#include "base/split.h"
#include "base/team.h"
#include "base/terminal.h"
#include "base/utf8.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/read_options.h"
#include "commands/text_input.h"
#include "data/train_text.h"
#include "text/encode/merges.h"
#include "text/files/tokenizer_json.h"
#include "text/inspect/verify.h"
#include "text/naming.h"
#include "text/split/pre_names.h"
#include "text/split/splitter.h"
#include "text/train/make.h"

namespace linnet {
namespace {

/// A file to write, by its suffix: .json is tokenizer.json, .gguf a GGUF without tensors.
struct Output {
    std::string path;
    bool overwrite = false;

    void add_options(CLI::App& app) { add_overwrite(app, overwrite); }
    /// Before the work.
    void prepare() const {
        if (!path.ends_with(".json") && !path.ends_with(".gguf"))
            usage_error("OUT", "a name that ends in .json or .gguf", "'" + path + "'");
        prepare_output(path, existing(overwrite));
    }
    void save(const Tokenizer& tokenizer) const {
        install_stop_signals();  // a file is written whole, or with a second Ctrl-C not at all
        if (path.ends_with(".json")) {
            const auto* pipeline = dynamic_cast<const Pipeline*>(&tokenizer);
            if (!pipeline)
                fail_input(path, "", "a tokenizer that tokenizer.json can express",
                           std::string(tokenizer.kind()));
            write_file(path, tokenizer_to_json(*pipeline), existing(overwrite));
        } else {
            write_file(path, tokenizer_to_gguf(tokenizer), existing(overwrite));
        }
        note_written(path);
    }
};

struct TrainArguments {
    std::string kind = "bpe", pre = "gpt-2", memory = "2G";
    Output out;
    std::int64_t vocab_size = 32000, min_frequency = 2;
    std::vector<std::string> special, files;
    bool lowercase = false;
    ReadOptions read;
};

/// The pre-tokenizer's hand-written splitter for the trainer.
WordSplitter splitter_of(const std::string& name) {
    const PreName& pre = find_pre_name(name, "", "--pretokenizer", Exit::usage);
    if (pre.words == Split::whole) {
        PreTokenizer steps = pre_tokenizer_of(pre);
        return [steps](std::string_view text, std::vector<std::uint32_t>& ends) {
            std::string copy(text);
            PreTokenizer::Words words;
            steps.apply(copy, true, true, words);
            for (auto [b, e] : words) ends.push_back(static_cast<std::uint32_t>(e));
        };
    }
    return word_splitter(pre.words);
}

/// "1.2 GB of 4.8 GB, 12s left at most" (merges grow faster as they go on)
std::string progress_text(std::uint64_t done, std::uint64_t total, double seconds,
                          std::string (*human)(double)) {
    std::string line = human(static_cast<double>(done));
    if (total == 0 || done == 0) return line;
    const double rest = static_cast<double>(total - std::min(done, total)) / static_cast<double>(done);
    return line + " of " + human(static_cast<double>(total)) + ", " + human_seconds(seconds * rest) +
           " left at most";
}

/// Options of some kinds of vocabulary: given for another kind they are usage errors.
struct KindOption {
    const char *option, *kinds;
};
constexpr KindOption kind_options[] = {
    {"--vocab-size", "bpe spm wordpiece"},
    {"--min-frequency", "bpe spm wordpiece"},
    {"--pretokenizer", "bpe"},
    {"--mem", "bpe spm wordpiece"},
    {"--lowercase", "wordpiece"},
    {"--special", "bpe spm wordpiece char"},
};

void check_kind(const CLI::App& app, const std::string& kind) {
    for (const KindOption& only : kind_options) {
        if (app.get_option(only.option)->count() == 0) continue;
        const std::vector<std::string_view> kinds = split(only.kinds, ' ');
        if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
            usage_error(only.option, "--kind " + joined(kinds, " or "), kind);
    }
}

/// Special tokens that the vocabulary can have beside all others, as far as that is known before it is made.
void check_special(const TrainArguments& arguments) {
    std::set<std::string> seen;
    for (const std::string& token : arguments.special) {
        if (!seen.insert(token).second) usage_error("--special", "each token once", quoted(token) + " twice");
        const char *begin = token.data(), *end = begin + token.size();
        require_utf8("--special", "tokens in UTF-8", token);
        if (decode_utf8(begin, end).size == token.size())
            usage_error("--special", "tokens of several characters", quoted(token));
    }
}

int run_train(const TrainArguments& arguments, const Globals& globals) {
    check_special(arguments);
    arguments.out.prepare();
    install_stop_signals();
    const int threads = threads_or_cores(globals.threads);
    TrainOptions options;
    options.kind = arguments.kind;
    options.text = inputs_name(input_name(arguments.files[0]), arguments.files.size());
    options.vocab_size = static_cast<TokenId>(arguments.vocab_size);
    options.min_frequency = static_cast<std::uint64_t>(arguments.min_frequency);
    options.special = arguments.special;
    options.memory = parse_size("--mem", arguments.memory, 1e6);
    options.threads = threads;
    options.lowercase = arguments.lowercase;
    if (arguments.kind == "bpe") options.splitter = splitter_of(arguments.pre);
    StatusLine status;
    const auto start = Clock::now();
    auto merging = start;
    options.progress = [&](std::string_view phase, std::uint64_t done, std::uint64_t total) {
        if (int signal = stop_signal()) throw Stopped{signal};
        if (phase == "merges")
            status.show("merges " + progress_text(done, total, seconds_since(merging), human_count));
    };
    try {
        ReadOptions read = arguments.read;
        finish_read_options(read);
        if (arguments.kind == "char" || arguments.kind == "byte") {
            const std::string text = training_text(arguments.files, read);
            arguments.out.save(*naming(options.text, [&] {
                return made_tokenizer(arguments.kind, text, 0, false, arguments.special, threads);
            }));
            return 0;
        }
        VocabularyTrainer trainer(options);
        const std::uint64_t skipped =
            train_on_files(trainer, arguments.files, read, [&](std::uint64_t done, std::uint64_t total) {
                status.show("words of " + progress_text(done, total, seconds_since(start), human_bytes));
            });
        merging = Clock::now();
        const TrainedVocabulary trained = trainer.finish();
        status.clear();
        arguments.out.save(*trained_tokenizer(trained, arguments.pre, arguments.lowercase));
        note(std::to_string(trained.tokens.size()) + " tokens from " +
             human_bytes(static_cast<double>(trainer.bytes())) + " and " +
             human_count(static_cast<double>(trainer.distinct_words())) + " distinct words in " +
             human_seconds(seconds_since(start)) +
             (skipped ? "; " + std::to_string(skipped) + (skipped == 1 ? " bad document" : " bad documents") +
                            " skipped"
                      : std::string()));
    } catch (const Stopped& stopped) {
        status.clear();
        note("linnet: stopped; " + arguments.out.path + " is not written");
        return 128 + stopped.signal;
    }
    return 0;
}

struct ConvertArguments {
    std::string in;
    Output out;
};

struct VerifyArguments {
    std::string a, b;
    std::vector<std::string> files;
    bool json = false;
};

std::string quoted_context(std::string_view text, std::size_t begin, std::size_t end) {
    const std::size_t from = character_start(text, begin > 30 ? begin - 30 : 0),
                      to = std::max(end, character_start(text, std::min(text.size(), end + 30)));
    return printable(json_quoted(text.substr(from, begin - from)) + " [" +
                     json_quoted(text.substr(begin, end - begin)) + "] " +
                     json_quoted(text.substr(end, to - end)));
}

std::string list(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
    std::string out;
    for (std::size_t i = 0; i < ids.size() && i < 16; i++)
        out += " " + std::to_string(ids[i]) + " " + printable(json_quoted(tokenizer.piece(ids[i])));
    return ids.size() > 16 ? out + " …" : out;
}

std::int64_t line_of(std::string_view text, std::size_t byte) {
    return std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(byte), '\n') + 1;
}

std::string verdict(const VerifyArguments& arguments, const Tokenizer& a, const Tokenizer& b,
                    const TextInput& input, const Comparison& c) {
    const std::string both = std::to_string(c.tokens_a) + " and " + std::to_string(c.tokens_b) + " tokens";
    std::string out = printable(input.name()) + ": ";
    if (c.differences == 0) return out + "the same " + std::to_string(c.tokens_a) + " tokens\n";
    if (!c.aligned)
        return out + "first difference at token " + std::to_string(c.first.begin) + ":" + list(a, c.first.a) +
               " against" + list(b, c.first.b) + "; " + std::to_string(c.differences) + " in all (" + both +
               ")\n";
    return out + "first difference at byte " + std::to_string(c.first.begin) + ", line " +
           std::to_string(line_of(input.text(), c.first.begin)) + ": " +
           quoted_context(input.text(), c.first.begin, c.first.end) + "\n  " + printable(arguments.a) + ":" +
           list(a, c.first.a) + "\n  " + printable(arguments.b) + ":" + list(b, c.first.b) + "\n  " +
           std::to_string(c.differences - 1) + " more differences (" + both + ")\n";
}

std::string verdict_json(const TextInput& input, const Comparison& c) {
    nlohmann::ordered_json out{{"file", input.name()},
                               {"same", c.differences == 0},
                               {"tokens_a", c.tokens_a},
                               {"tokens_b", c.tokens_b},
                               {"differences", c.differences}};
    if (c.differences > 0) {
        nlohmann::ordered_json& first = out["first"] = {{c.aligned ? "byte" : "token", c.first.begin}};
        if (c.aligned) first["line"] = line_of(input.text(), c.first.begin);
        first["ids_a"] = c.first.a;
        first["ids_b"] = c.first.b;
    }
    return json_line(out);
}

/// Exit code 0 where both agree on every text, 3 where not.
int run_verify(const VerifyArguments& arguments, const Globals& globals) {
    const TokenizerPtr a = open_tokenizer(arguments.a), b = open_tokenizer(arguments.b);
    const int threads = threads_or_cores(globals.threads);
    std::size_t all = 0;
    for (const std::string& path : arguments.files) {
        const TextInput input(path);
        const Comparison c =
            naming(input.name(), [&] { return compare_tokenizers(*a, *b, input.text(), threads); });
        all += c.differences;
        write_stdout(arguments.json ? verdict_json(input, c) : verdict(arguments, *a, *b, input, c));
    }
    flush_stdout();
    return all == 0 ? 0 : 3;
}

}  // namespace

Action add_tokenizer_train(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<TrainArguments>();
    add_choice(app, "--kind", options->kind, {"bpe", "spm", "wordpiece", "char", "byte"},
               "the kind of vocabulary");
    add_integer(app, "--vocab-size", options->vocab_size, 2, MergeTable::most_symbols,
                "tokens, special ones included");
    add_integer(app, "--min-frequency", options->min_frequency, 1, INT64_MAX,
                "a pair seen less often is not merged");
    add_texts(app, "--special", options->special,
              "a special token (may be given several times; the first marks the end of a text)");
    add_text(app, "--pretokenizer", options->pre,
             "how bpe cuts words: gpt-2, llama-bpe, qwen2, gpt-4o, starcoder, … (a wrong name lists all)")
        ->type_name("PRE");
    add_text(app, "--mem", options->memory,
             "memory for counting, with K, M or G (powers of 1000); the rest goes to disk")
        ->type_name("SIZE");
    app.add_flag("--lowercase", options->lowercase, "wordpiece: lower-case the text, without accents");
    add_output(app, "-o,--out", options->out.path, "tokenizer.json or GGUF to write")
        ->required()
        ->type_name("OUT");
    options->out.add_options(app);
    add_hidden_names(app, "--format", add_read_options(app, options->read));
    add_files(app, "FILE", options->files,
              "texts or folders of them (.txt, .jsonl, also .gz or .zst; - is stdin)")
        ->required();
    return [options, &globals, &app] {
        check_kind(app, options->kind);
        return run_train(*options, globals);
    };
}

Action add_tokenizer_convert(CLI::App& app, const Globals&) {
    auto options = std::make_shared<ConvertArguments>();
    auto* in = add_file(app, "IN", options->in,
                        "GGUF, tokenizer.json, .tiktoken or SentencePiece model, or a folder");
    add_hidden_names(app, "-t,--tokenizer,-m,--model", in);
    auto* out = add_output(app, "OUT", options->out.path, "the file to write: .json or .gguf");
    add_hidden_names(app, "-o,--out", out->required());
    options->out.add_options(app);
    return [options] {
        options->out.prepare();
        options->out.save(*open_tokenizer(options->in));
        return 0;
    };
}

Action add_tokenizer_verify(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<VerifyArguments>();
    add_file(app, "A", options->a, "a tokenizer");
    add_file(app, "B", options->b, "the other");
    add_files(app, "FILE", options->files, "texts to compare on; -: stdin")->required();
    app.add_flag("--json", options->json, "one JSON object per text: file, same, tokens_a, tokens_b, …");
    return [options, &globals] { return run_verify(*options, globals); };
}

}  // namespace linnet
