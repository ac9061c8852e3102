// Chat templates: what stands around the messages of a conversation, as the model has seen it in training.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace linnet {

/// One family's template, as its data file says it (models/templates/README.md explains the keys). In
/// `before` and `after`, "{bos}" and "{eos}" stand for the vocabulary's begin and end tokens, and text that
/// spells a control token is that token.
struct ChatTemplate {
    struct Around {
        std::string before, after;
    };
    std::string name;
    std::vector<std::string> known_by;  // all of these stand in the chat template of a file,
    std::vector<std::string> unless;    // and none of these
    Around system, user, assistant;
    bool system_in_user = false;    // the system text is the beginning of the first user message
    bool trim = false;              // messages without white space at their ends
    std::vector<std::string> ends;  // an answer ends before the first of these
    bool continues = false;         // there are no roles: the model goes on from what is typed
};

/// Those built into the program, in the order of their names.
std::span<const ChatTemplate> chat_templates();

/// The text of a template's file. Errors name `path`, the key, and what was expected.
ChatTemplate parse_chat_template(std::string_view json, const std::string& path);

/// One of chat_templates() by its name, else a file. Error(Exit::input) naming `option`.
ChatTemplate open_chat_template(const std::string& name_or_path, std::string_view option);

/// The key of a model's GGUF file that has its own template: a program in a language of its own.
inline constexpr const char* chat_template_key = "tokenizer.chat_template";

/// What a file's own template means: what jinja_of() wrote is what it was made of, else which of `known` has
/// its marks. Error(Exit::input) naming `file`, and `place` in it, where it is none of them, or several.
ChatTemplate recognise_chat_template(std::string_view source, std::span<const ChatTemplate> known,
                                     std::string_view file, std::string_view place = chat_template_key);
/// Both as errors name them: "FILE: PLACE", or "FILE" where the file is the template.
std::string place_in(std::string_view file, std::string_view place);

/// Whether a file's own template has the marks of this one.
bool has_marks(std::string_view source, const ChatTemplate& form);

/// The template as a file's own, for other runtimes: a Jinja program behind a comment that has it as data.
/// `begins`: the vocabulary puts a begin token before every text.
std::string jinja_of(const ChatTemplate& form, bool begins);

/// Whether it begins as those do.
bool is_linnets_jinja(std::string_view source);
/// The template in the comment of such a program; nothing where that is another's. Errors name `file` and
/// `place`.
std::optional<ChatTemplate> template_in(std::string_view source, std::string_view file,
                                        std::string_view place = chat_template_key);

/// A user's message and its answer, where there is one yet.
struct ChatTurn {
    struct Answer {
        std::string text;
        std::vector<TokenId> ids;  // as they were written, without an end token; empty: `text` is encoded
    };
    std::string user;
    std::optional<Answer> answer;
};

/// A stretch of a conversation as the model reads it.
struct ChatPart {
    enum class Kind { markup, plain, written };
    Kind kind;
    std::string text;             // markup: the template's own; plain: a person's
    std::vector<TokenId> tokens;  // written
};

/// The whole conversation, up to where the next answer begins. A space at the end of assistant.before is the
/// model's to write, and left out there.
std::vector<ChatPart> chat_parts(const ChatTemplate& form, std::string_view system,
                                 std::span<const ChatTurn> turns);

/// Its ids, with a begin token where the vocabulary asks for one. Text is encoded in as long stretches as it
/// would be in one piece. Plain text spells no control token, and none that the template's markup has, unless
/// `special`. `written_at` gets where each written part's tokens begin.
std::vector<TokenId> encode_chat(const Tokenizer& tokenizer, std::span<const ChatPart> parts,
                                 bool special = false, std::vector<std::size_t>* written_at = nullptr);

/// The tokens that end an answer: the control tokens among the template's ends.
std::vector<TokenId> end_tokens(const Tokenizer& tokenizer, const ChatTemplate& form);

/// Without white space at the ends.
std::string_view trimmed(std::string_view text);
/// Without spaces at the end.
std::string_view without_last_spaces(std::string_view text);

}  // namespace linnet
