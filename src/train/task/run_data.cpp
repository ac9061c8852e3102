#include "train/task/run_data.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/split.h"
#include "base/team.h"
#include "base/terminal.h"
#include "data/corpus_check.h"
#include "model/convert/source.h"
#include "text/naming.h"
#include "text/train/make.h"

namespace linnet {

using nlohmann::json;

json DataOptions::to_json() const {
    std::vector<std::string> paths;
    for (const std::string& input : inputs) paths.push_back(input == "-" ? input : kept_path(input));
    nlohmann::json all = {{"inputs", paths},
                          {"names", called()},
                          {"format", read.format},
                          {"field", read.field},
                          {"separator", read.separator},
                          {"invalid", read.invalid},
                          {"skip_bad", read.skip_bad},
                          {"fields", fields}};
    if (!weights.empty()) all["weights"] = weights;
    if (resize) all["resize"] = true;
    return all;
}

DataOptions DataOptions::from_json(const json& json) {
    DataOptions options;
    options.inputs = json.at("inputs").get<std::vector<std::string>>();
    options.names = json.value("names", std::vector<std::string>());
    if (options.names.size() != options.inputs.size()) options.names.clear();
    options.weights = json.value("weights", std::vector<double>());
    if (!options.weights.empty() && options.weights.size() != options.inputs.size()) options.weights.clear();
    options.read.format = json.at("format").get<std::string>();
    options.read.field = json.at("field").get<std::string>();
    options.read.separator = json.at("separator").get<std::string>();
    options.read.invalid = json.at("invalid").get<std::string>();
    options.read.skip_bad = json.at("skip_bad").get<bool>();
    options.fields = json.value("fields", std::vector<std::string>());
    options.resize = json.value("resize", false);
    return options;
}

RunData::RunData(DataOptions options) : options_(std::move(options)) {
    const std::vector<std::string>& inputs = options_.inputs;
    for (const std::string& input : inputs) {
        corpus_ = find_token_files(input);
        if (!corpus_) continue;
        if (inputs.size() > 1)
            fail_input(input, "", "texts, or one corpus alone",
                       "a corpus among " + std::to_string(inputs.size()) + " inputs");
        sha256_ = corpus_->sha256();
        bytes_ = corpus_->index.bytes;
        count_ = corpus_->index.documents;
        vocabulary_ = corpus_->index.vocab_size;
        if (corpus_->ours) return;
        constexpr std::uint64_t bytes_per_token = 4;  // about; until a tokenizer has counted them
        bytes_ = corpus_->index.tokens * bytes_per_token;
        if (!own_tokenizer().empty()) vocabulary_ = load_tokenizer(own_tokenizer())->size();
        return;
    }
    if (are_examples(inputs, options_.read, options_.fields)) {
        examples_ = read_examples(inputs, options_.read, options_.fields);
        sha256_ = examples_->sha256;
        bytes_ = examples_->bytes;
        count_ = examples_->list.size();
        return;
    }
    documents_ = read_documents(inputs, options_.read);
    sha256_ = documents_->sha256();
    bytes_ = documents_->text.size();
    count_ = documents_->count();
}

std::string RunData::name() const {
    const std::vector<std::string>& inputs = options_.inputs;
    if (inputs.size() > 1) return inputs_name(inputs[0], inputs.size());
    return input_name(inputs[0]);
}

std::uint64_t RunData::bytes() const {
    return bytes_;
}

bool RunData::jsonl() const {
    if (options_.read.format != "auto") return options_.read.format == "jsonl";
    std::vector<std::string> files = expand_inputs(options_.inputs, options_.read.except);
    return std::any_of(files.begin(), files.end(),
                       [&](const std::string& file) { return reads_as_jsonl(file, options_.read.format); });
}

std::string RunData::description() const {
    if (corpus_ && !corpus_->ours)
        return grouped(corpus_->index.tokens) + " tokens in the layout of " + corpus_->index.layout;
    std::string size = human_bytes(static_cast<double>(bytes_));
    std::string said = count_ == 1 ? "one document" : grouped(count_) + " documents";
    auto skipped = [](const Skipped& bad) { return bad.skipped == 0 ? "" : "; " + bad.told("one"); };
    if (examples_)
        return grouped(count_) + (examples_->chats ? " conversation" : " prompt") + (count_ == 1 ? "" : "s") +
               (examples_->chats ? ", " : " with completions, ") + size + skipped(*examples_);
    if (corpus_) return said + ", " + grouped(corpus_->index.tokens) + " tokens of " + size + " of text";
    if (jsonl()) said += " of the field " + options_.read.field;
    if (documents_ && documents_->files > 1) said += " in " + grouped(documents_->files) + " files";
    said += ", " + size;
    return documents_ ? said + skipped(*documents_) : said;
}

void RunData::check(bool whole) const {
    if (corpus_ && corpus_->ours) check_corpus(corpus_->folder, whole);
}

std::string RunData::first_chat() const {
    if (!examples_ || !examples_->chats) return "";
    return examples_->list[0].place();
}

PackedTexts RunData::packed(const Tokenizer& tokenizer, const ChatTemplate* form, double fraction,
                            std::uint64_t seed, std::int64_t T, int threads) {
    std::vector<PackedText> texts[2];
    // Each in its place, whichever thread makes it.
    auto encode = [&](std::vector<PackedText>& to, std::size_t count, const auto& one) {
        to.resize(count);
        run_team(threads, [&](Worker worker) {
            const Range range = worker.share(static_cast<std::int64_t>(count));
            for (std::int64_t i = range.begin; i < range.end; i++)
                to[static_cast<std::size_t>(i)] = one(static_cast<std::size_t>(i));
        });
    };
    if (examples_) {
        const std::vector<bool> held = held_out_examples(*examples_, fraction);
        std::vector<const Example*> parts[2];
        for (std::size_t i = 0; i < held.size(); i++) parts[held[i]].push_back(&examples_->list[i]);
        for (int s = 0; s < 2; s++)
            encode(texts[s], parts[s].size(), [&](std::size_t i) {
                const Example& example = *parts[s][i];
                return naming(example.place(), [&] { return encode_example(tokenizer, example, form); });
            });
    } else {
        const TextSplit split = split_documents(*documents_, fraction);
        const std::vector<std::string_view>* parts[2] = {&split.train, &split.validation};
        for (int s = 0; s < 2; s++)
            encode(texts[s], parts[s]->size(), [&](std::size_t i) {
                return naming_part(split, *parts[s], i, name(),
                                   [&] { return encode_whole(tokenizer, (*parts[s])[i]); });
            });
    }
    PackedTexts packed(texts, !examples_, tokenizer, seed, T, name());
    if (examples_) note_examples(packed, tokenizer.eos().has_value(), T);
    documents_.reset(), examples_.reset();
    return packed;
}

void RunData::note_examples(const PackedTexts& packed, bool has_end, std::int64_t T) {
    const std::string begin = printable(name()) + ": ";
    const auto too_long = [&](std::uint64_t count, const std::string& what) {
        if (count > 0)
            notes_.push_back(begin + grouped(count) + " of " + grouped(count_) +
                             " examples are longer than train.sequence (" + std::to_string(T) +
                             " tokens) and " + what);
    };
    too_long(packed.shortened(), "lose their ends");
    too_long(packed.left_out(), "are left out, as their answers begin behind it");
    if (!examples_->chats && !has_end)
        notes_.push_back(begin +
                         "the vocabulary has no end token, so nothing is learned that ends a completion");
}

TokenizerPtr RunData::tokenizer(const RunConfig& run, int threads) const {
    const TokenizerConfig& config = run.tokenizer;
    if (config.kind == "file") return tokenizer_at(config.file);
    if (corpus_) {  // its tokens are made, whatever the config would have made
        const std::string path = own_tokenizer();
        if (!name_taken(path))
            fail_input(options_.inputs[0], corpus_->ours ? corpus_tokenizer : "",
                       "the tokenizer that the corpus was made with", "nothing",
                       "--set tokenizer.kind=file --set tokenizer.file=PATH names another");
        const std::string there = linnet::sha256(MappedFile(path).text());
        if (corpus_->ours && there != corpus_->index.tokenizer_sha256)
            fail_input(path, "sha256", corpus_->index.tokenizer_sha256 + ", which made the corpus", there);
        return load_tokenizer(path);
    }
    const double fraction = run.train.validation_fraction;
    if (examples_) return make_vocabulary(run, vocabulary_text(config, fraction), threads, true);
    if ((config.kind == "bpe" || config.kind == "wordpiece") && count_ == 1) {  // spares a copy
        std::vector<std::string_view> parts = split_documents(*documents_, fraction).train;
        if (parts.size() == 1) return make_vocabulary(run, parts[0], threads);
    }
    return make_vocabulary(run, vocabulary_text(config, fraction), threads);
}

TokenizerPtr make_vocabulary(const RunConfig& run, std::string_view text, int threads, bool answers) {
    return made_tokenizer(run.tokenizer.kind, text, static_cast<TokenId>(run.tokenizer.vocab_size),
                          run.tokenizer.lowercase, special_tokens(run, answers), threads);
}

std::string RunData::vocabulary_text(const TokenizerConfig& config, double fraction) const {
    // Characters must all be known, also those of the held-out part (and the newline that parts documents);
    // merges are learned from the training part only.
    const bool all = config.knows_all();
    if (examples_) {
        const std::vector<bool> held = held_out_examples(*examples_, all ? 0 : fraction);
        std::string text;
        for (std::size_t i = 0; i < held.size(); i++)
            if (!held[i]) text += examples_->list[i].prompt + examples_->list[i].completion;
        return text;
    }
    if (all) return count_ == 1 ? documents_->text : documents_->text + "\n";
    return joined(split_documents(*documents_, fraction).train, "");
}

TokenSource RunData::tokens(const Tokenizer& tokenizer, double fraction, int threads) {
    if (corpus_) return TokenSource::open_files(*corpus_, tokenizer, fraction);
    TokenSource source = TokenSource::from_documents(split_documents(*documents_, fraction), count_ > 1,
                                                     tokenizer, threads, name());
    documents_.reset();
    return source;
}

}  // namespace linnet
