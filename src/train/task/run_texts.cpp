#include "train/task/run_texts.h"

#include <cstdio>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/terminal.h"
#include "data/mixture.h"

namespace linnet {

RunTexts::RunTexts(DataOptions options) : options_(std::move(options)) {
    if (options_.weights.empty()) {
        parts_.emplace_back(options_);
        return;
    }
    for (const std::string& input : options_.inputs) {
        DataOptions one = options_;
        one.inputs = {input}, one.names.clear(), one.weights.clear();
        parts_.emplace_back(std::move(one));
    }
    std::string first;
    for (const RunData& part : parts_) {
        const std::string own = part.own_tokenizer();
        if (own.empty()) continue;
        if (first.empty()) first = own;
        if (linnet::sha256(MappedFile(own).text()) != linnet::sha256(MappedFile(first).text()))
            fail_input(part.name(), "tokenizer", "that of " + first, "another one",
                       "corpora that are trained on together need the same");
    }
}

std::string RunTexts::name() const {
    return inputs_name(parts_[0].name(), parts_.size());
}

std::string RunTexts::sha256() const {
    if (parts_.size() == 1) return parts_[0].sha256();
    std::string all;
    for (const RunData& part : parts_) all += part.sha256();
    return linnet::sha256(all);
}

std::uint64_t RunTexts::bytes() const {
    std::uint64_t sum = 0;
    for (const RunData& part : parts_) sum += part.bytes();
    return sum;
}

std::int64_t RunTexts::vocabulary() const {
    for (const RunData& part : parts_)
        if (part.vocabulary() > 0) return part.vocabulary();
    return 0;
}

std::vector<std::string> RunTexts::descriptions() const {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < parts_.size(); i++) {
        lines.push_back(printable(parts_[i].name()) + ": " + parts_[i].description());
        char weight[32];
        std::snprintf(weight, sizeof weight, ", weight %g", parts_.size() > 1 ? options_.weights[i] : 1);
        if (parts_.size() > 1) lines.back() += weight;
    }
    return lines;
}

std::string RunTexts::own_tokenizer() const {
    for (const RunData& part : parts_)
        if (!part.own_tokenizer().empty()) return part.own_tokenizer();
    return {};
}

void RunTexts::check(bool whole) const {
    for (const RunData& part : parts_) part.check(whole);
}

const RunData* RunTexts::examples() const {
    for (const RunData& part : parts_)
        if (part.has_examples()) return &part;
    return nullptr;
}

std::string RunTexts::first_chat() const {
    for (const RunData& part : parts_)
        if (!part.first_chat().empty()) return part.first_chat();
    return {};
}

TokenizerPtr RunTexts::tokenizer(const RunConfig& config, int threads) const {
    if (const std::string chat = first_chat(); !chat.empty())
        fail_input(chat, "", "texts, or prompts with completions, for a model that begins from nothing",
                   "a conversation", "linnet finetune learns from those");
    for (const RunData& part : parts_)
        if (parts_.size() == 1 || config.tokenizer.kind == "file" || part.is_corpus())
            return part.tokenizer(config, threads);
    std::string text;
    for (const RunData& part : parts_)
        text += part.vocabulary_text(config.tokenizer, config.train.validation_fraction);
    return make_vocabulary(config, text, threads, examples() != nullptr);
}

std::vector<TokenSource> RunTexts::tokens(const Tokenizer& tokenizer, const ChatTemplate* form,
                                          bool pack_documents, double fraction, std::uint64_t seed,
                                          std::int64_t T, int threads) {
    pack_documents = pack_documents && parts_.size() == 1;
    std::vector<TokenSource> sources;
    for (std::size_t i = 0; i < parts_.size(); i++) {
        RunData& part = parts_[i];
        if (part.has_examples() || (pack_documents && part.is_packable()))
            sources.push_back(TokenSource::from_packed(
                part.packed(tokenizer, form, fraction, seed_of_source(seed, i), T, threads), part.name()));
        else
            sources.push_back(part.tokens(tokenizer, fraction, threads));
    }
    return sources;
}

std::vector<std::string> RunTexts::notes() const {
    std::vector<std::string> all;
    for (const RunData& part : parts_) all.insert(all.end(), part.notes().begin(), part.notes().end());
    return all;
}

}  // namespace linnet
