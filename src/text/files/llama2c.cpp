#include "text/files/llama2c.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/split.h"
#include "text/files/spm.h"

namespace linnet {
namespace {

// What export.py of llama2.c writes for the tokens 1 and 2.
constexpr std::string_view begin_spelling = "\n<s>\n", end_spelling = "\n</s>\n";
constexpr TokenId unknown_id = 0, begin_id = 1, end_id = 2;

class Cursor {
  public:
    Cursor(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}
    template <class T>
    T number(const char* what) {
        T value;
        std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
        return value;
    }
    std::string_view take(std::size_t size, const std::string& what) {
        if (size > bytes_.size() - at_)
            fail_input(file_, what, std::to_string(size) + " bytes at byte " + std::to_string(at_),
                       std::to_string(bytes_.size() - at_), "is it the tokenizer of another model?");
        at_ += size;
        return bytes_.substr(at_ - size, size);
    }
    std::size_t left() const { return bytes_.size() - at_; }

  private:
    std::string_view bytes_;
    const std::string& file_;
    std::size_t at_ = 0;
};

}  // namespace

TokenizerPtr tokenizer_from_llama2c(std::string_view bytes, const std::string& file, TokenId size) {
    Cursor in(bytes, file);
    in.number<std::int32_t>("longest token");
    Parts parts;
    Vocabulary& vocabulary = *parts.vocabulary;
    for (TokenId id = 0; id < size; id++) {
        const std::string where = "token " + std::to_string(id);
        const auto score = in.number<float>(where.c_str());
        const auto length = in.number<std::int32_t>(where.c_str());
        if (length < 0 || length > 1 << 16)
            fail_input(file, where, "a length of 0 to 65536", std::to_string(length));
        if (!std::isfinite(score)) fail_input(file, where, "a finite score", "another");
        std::string spelling(in.take(static_cast<std::size_t>(length), where));
        TokenType type = TokenType::normal;
        if (id == unknown_id)
            type = TokenType::unknown;
        else if (id == begin_id || id == end_id)
            type = TokenType::control, spelling = id == begin_id ? "<s>" : "</s>";
        else if (byte_of_spelling(spelling) >= 0)
            type = TokenType::byte;
        else
            spelling = replaced(spelling, " ", space_mark);
        vocabulary.add(spelling, type, score);
    }
    if (in.left() > 0)
        fail_input(file, "", std::to_string(size) + " tokens, as many as the model has",
                   std::to_string(in.left()) + " more bytes", "is it the tokenizer of another model?");
    if (size <= end_id) fail_input(file, "", "at least 3 tokens", std::to_string(size));
    parts.special.unknown = unknown_id, parts.special.bos = begin_id, parts.special.eos = end_id;
    for (TokenId id : {unknown_id, begin_id, end_id}) {
        AddedToken token;
        token.id = id, token.content = std::string(vocabulary.spelling(id)), token.special = true;
        parts.added.push_back(std::move(token));
    }
    parts.scores = true;
    use_spm_model(parts, {});
    parts.prefix.push_back(begin_id);
    return std::make_shared<Pipeline>(std::move(parts));
}

std::string tokenizer_to_llama2c(const Tokenizer& tokenizer) {
    const auto* pipeline = dynamic_cast<const Pipeline*>(&tokenizer);
    if (!pipeline || pipeline->kind() != "spm" || pipeline->parts().special.bos != begin_id ||
        pipeline->parts().special.eos != end_id)
        fail_input("tokenizer", "llama2.c", "a SentencePiece vocabulary with <s> and </s> as tokens 1 and 2",
                   std::string(tokenizer.kind()));
    const Vocabulary& vocabulary = *pipeline->parts().vocabulary;
    std::string out;
    auto put = [&](auto value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
    std::int32_t longest = 0;
    put(longest);
    for (TokenId id = 0; id < vocabulary.size(); id++) {
        std::string spelling(id == begin_id ? begin_spelling
                             : id == end_id ? end_spelling
                                            : vocabulary.spelling(id));
        spelling = replaced(spelling, space_mark, " ");
        put(static_cast<float>(vocabulary.score(id))), put(static_cast<std::int32_t>(spelling.size()));
        out += spelling;
        longest = std::max(longest, static_cast<std::int32_t>(spelling.size()));
    }
    std::memcpy(out.data(), &longest, sizeof longest);
    return out;
}

}  // namespace linnet
