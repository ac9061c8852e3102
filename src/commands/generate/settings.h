// How one text is written: the settings that have an option of the command and a key of a batch file's lines.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fields.h"
#include "generate/generator.h"

namespace CLI {
class App;
}

namespace linnet {

struct TextSettings {
    GenerateOptions generate;
    std::int64_t seed = -1;               // -1: chosen by chance
    bool special = false;                 // text in the prompt that spells a control token is one
    std::vector<std::string> logit_bias;  // as it was given; resolve() knows the tokens
    std::string grammar, json_schema;     // files; at most one of them
};

/// Named as the options are, without the dashes before them.
std::vector<Field> text_fields(TextSettings& settings);

/// Settings of several texts each: options that may be given several times, keys that take a text or a list.
struct TextList {
    std::string key;
    std::vector<std::string>* target;
    std::string help;
};
std::vector<TextList> text_lists(TextSettings& settings);

/// The key of the setting that has `name`: its own, with "_" for "-" if one likes, the option's other one, or
/// "n" for "tokens".
std::string text_key(std::string name);
/// Error(Exit::input) at `place` where `key` is none of those that are `known`: as it was spelled, with the
/// one that may have been meant.
void require_text_key(const std::string& key, std::span<const std::string> known, const std::string& place,
                      const std::string& spelled);

/// The options of both tables.
void add_text_options(CLI::App& app, TextSettings& settings);

/// What settings mean in one vocabulary: grammars and schemas, each file read once, and the tokens of biases.
class GrammarFiles {
  public:
    /// The tokenizer must outlive it and what it has read.
    explicit GrammarFiles(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
    const Tokenizer& tokenizer() const { return tokenizer_; }
    /// The tokens that a bias names: by id, or in quotes by their text; none where there is no such token.
    const std::vector<TokenId>& named(const std::string& name);
    /// Files are read again, as they may have changed.
    void forget() { read_.clear(); }
    /// Error(Exit::input) naming the file and the place.
    std::shared_ptr<TokenConstraint> read(const std::string& path, bool is_schema);

  private:
    const Tokenizer& tokenizer_;
    std::shared_ptr<const GrammarVocabulary> vocabulary_;
    std::map<std::pair<std::string, bool>, std::shared_ptr<TokenConstraint>> read_;
    std::map<std::string, std::vector<TokenId>> named_;
};

/// Checks what a table cannot, finds the tokens of biases and reads the grammar. An error of a setting has
/// this exit code and begins with `place`, a file and a line; without one it names options.
void resolve(TextSettings& settings, GrammarFiles& files, Exit exit, const std::string& place = {});

}  // namespace linnet
