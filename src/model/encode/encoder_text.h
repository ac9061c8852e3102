// How texts become an encoder's input: what stands around them, pairs, words.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/encode/encoder.h"

namespace linnet {

/// Tokens that a vocabulary has for encoders; nothing where it has none. Found by their spellings: "[MASK]"
/// or "<mask>", "[CLS]" or "<s>", "[SEP]" or "</s>".
struct EncoderMarks {
    std::optional<TokenId> mask, first, separator;
    explicit EncoderMarks(const Tokenizer& tokenizer);
};

/// The id of the first of these spellings that the vocabulary has.
std::optional<TokenId> find_token(const Tokenizer& tokenizer, std::initializer_list<std::string_view> names);

/// A text with its marks, as embeddings are made of it. `special`: text that spells a control token is one.
EncoderInput text_input(const Tokenizer& tokenizer, std::string_view text, bool special);

/// Two texts: [CLS] a [SEP] b [SEP], the second of segment 1 (where the model has one); a text alone where
/// `second` is nothing.
EncoderInput pair_input(const Tokenizer& tokenizer, const EncoderMarks& marks, std::string_view first,
                        std::optional<std::string_view> second);

/// Words that spaces part, each encoded by itself; wanted: the first row of each.
EncoderInput words_input(const Tokenizer& tokenizer, const EncoderMarks& marks, std::string_view line);

/// A token that an encoder–decoder's answers begin behind, and one that they end with.
struct AnswerMarks {
    TokenId start, end;
};
/// Error(Exit::input) naming `name` where the vocabulary has no end token.
AnswerMarks answer_marks(const Tokenizer& tokenizer, const ModelConfig& config, const std::string& name);

/// What a model calls its classes or tags (metadata linnet.labels); numbers where it does not say.
std::vector<std::string> labels_of(const Model& model);
/// The number of each name among them. Error(Exit::input), of `data`, where it is not one of them.
std::vector<std::int32_t> label_numbers(const std::vector<std::string>& names, const Model& model,
                                        const std::string& data);
/// Whether it tells classes of single texts, never of two (metadata linnet.texts); false where it does not
/// say.
bool reads_single_texts(const Model& model);
/// The two labels, original and replaced, of a model that tells which tokens were replaced (ELECTRA).
std::vector<std::string> replaced_labels();

}  // namespace linnet
