#include "commands/text_input.h"

#include <cstdint>
#include <filesystem>

#include "base/error.h"
#include "data/utf8_check.h"
#include "model/model.h"
#include "text/unicode/unicode.h"
#include "train/run_model.h"

namespace linnet {

TextInput::TextInput(const std::string& path, std::string_view invalid)
    : name_(path == "-" ? "stdin" : path) {
    if (path == "-") {
        buffer_ = read_stdin(SIZE_MAX);
        text_ = buffer_;
    } else {
        file_ = MappedFile(path);
        text_ = file_.text();
    }
    refuse_wide_encoding(name_, text_);
    if (invalid == "keep") return;
    const std::size_t fault = valid_utf8_prefix(text_);
    if (fault == text_.size()) return;
    if (invalid == "error")
        fail_input(name_, "byte " + std::to_string(fault), "UTF-8", utf8_fault_name(text_, fault),
                   "--invalid replace or keep reads it all the same");
    std::string repaired;
    append_repaired(text_, repaired);
    buffer_ = std::move(repaired);
    text_ = buffer_;
}

TokenizerPtr open_tokenizer(const std::string& path) {
    if (path.empty()) {
        std::shared_ptr<const Model> model = Model::open("");
        return TokenizerPtr(model, &model->tokenizer());
    }
    if (std::filesystem::is_directory(path) && std::filesystem::exists(path + "/tokenizer.json"))
        return load_tokenizer(path + "/tokenizer.json");
    return load_tokenizer(model_of_run(path));
}

}  // namespace linnet
