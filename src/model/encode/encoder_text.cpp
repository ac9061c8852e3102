#include "model/encode/encoder_text.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/fields.h"
#include "base/split.h"

namespace linnet {

std::optional<TokenId> find_token(const Tokenizer& tokenizer, std::initializer_list<std::string_view> names) {
    for (std::string_view name : names)
        for (TokenId id = 0; id < tokenizer.size(); id++)
            if (tokenizer.is_control(id) && tokenizer.piece(id) == name) return id;
    return std::nullopt;
}

EncoderMarks::EncoderMarks(const Tokenizer& tokenizer)
    : mask(find_token(tokenizer, {"[MASK]", "<mask>"})),
      first(find_token(tokenizer, {"[CLS]", "<s>"})),
      separator(find_token(tokenizer, {"[SEP]", "</s>"})) {}

EncoderInput text_input(const Tokenizer& tokenizer, std::string_view text, bool special) {
    EncodeOptions options;
    options.add_special = true;
    options.parse_special = special;
    EncoderInput input;
    tokenizer.encode(text, input.tokens, options);
    return input;
}

EncoderInput pair_input(const Tokenizer& tokenizer, const EncoderMarks& marks, std::string_view first,
                        std::optional<std::string_view> second) {
    EncoderInput input;
    if (marks.first) input.tokens.push_back(*marks.first);
    tokenizer.encode(first, input.tokens);
    if (marks.separator) input.tokens.push_back(*marks.separator);
    if (!second) return input;
    input.segments.resize(input.tokens.size(), 0);
    tokenizer.encode(*second, input.tokens);
    if (marks.separator) input.tokens.push_back(*marks.separator);
    input.segments.resize(input.tokens.size(), 1);
    return input;
}

EncoderInput words_input(const Tokenizer& tokenizer, const EncoderMarks& marks, std::string_view line) {
    EncoderInput input;
    if (marks.first) input.tokens.push_back(*marks.first);
    std::string spaced;
    for (std::string_view word : split(line, ' ')) {
        const std::size_t row = input.tokens.size();
        spaced.assign(row == 0 ? 0 : 1, ' ');
        spaced += word;
        tokenizer.encode(spaced, input.tokens);
        if (input.tokens.size() == row)  // nothing that the vocabulary has a token for
            input.tokens.push_back(marks.mask.value_or(0));
        input.wanted.push_back(static_cast<std::int32_t>(row));
    }
    if (marks.separator) input.tokens.push_back(*marks.separator);
    return input;
}

AnswerMarks answer_marks(const Tokenizer& tokenizer, const ModelConfig& config, const std::string& name) {
    const auto end = tokenizer.eos();
    if (!end) fail_input(name, "vocabulary", "an end token, for answers to end with", "none");
    const TokenId start =
        config.start_token >= 0 ? static_cast<TokenId>(config.start_token) : tokenizer.bos().value_or(*end);
    if (start >= tokenizer.size())
        fail_input(name, "model.start_token", "an id below " + std::to_string(tokenizer.size()),
                   std::to_string(start));
    return {start, *end};
}

std::vector<std::int32_t> label_numbers(const std::vector<std::string>& names, const Model& model,
                                        const std::string& data) {
    const std::vector<std::string> known = labels_of(model);
    std::vector<std::int32_t> numbers;
    for (const std::string& name : names) {
        const auto found = std::ranges::find(known, name);
        if (found == known.end())
            fail_input(data, name, "one of the model's classes", "another", "of " + model.path());
        numbers.push_back(static_cast<std::int32_t>(found - known.begin()));
    }
    return numbers;
}

bool reads_single_texts(const Model& model) {
    return model.file() && model.file()->string("linnet.texts") == "1";
}

std::vector<std::string> replaced_labels() {
    return {"original", "replaced"};
}

std::vector<std::string> labels_of(const Model& model) {
    const auto count = static_cast<std::size_t>(model.config().head.classes);
    std::vector<std::string> labels;
    if (model.file())
        if (auto text = model.file()->string("linnet.labels")) {
            const nlohmann::json list = parse_or_discard(*text);
            if (!list.is_array() || list.size() != count)
                fail_input(model.path(), "linnet.labels", std::to_string(count) + " names, as JSON",
                           "something else");
            for (const auto& name : list) labels.push_back(name.is_string() ? name.get<std::string>() : "");
            return labels;
        }
    for (std::size_t i = 0; i < count; i++) labels.push_back(std::to_string(i));
    return labels;
}

}  // namespace linnet
