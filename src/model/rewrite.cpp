#include "model/rewrite.h"

#include <algorithm>

#include "text/chat/template.h"

namespace linnet {

void copy_metadata(const Gguf& file, GgufWriter& out, const std::function<bool(std::string_view key)>& drop) {
    for (std::size_t i = 0; i < file.values().size(); i++) {
        const std::string key(file.values()[i].first);
        if (key != "general.alignment" && key != "general.file_type" && !key.starts_with("split.") &&
            !drop(key))
            out.add_stored(key, file.stored_value(i));
    }
}

std::string rewrite_model(const Gguf& file, const std::string& path, const Provenance& provenance,
                          const std::function<std::optional<NewTensor>(const GgufTensor&)>& replace,
                          bool hashed, Existing existing, std::string_view chat_template) {
    GgufWriter out;
    copy_metadata(file, out, [&](std::string_view key) {
        if (key == chat_template_key) return !chat_template.empty();
        return key.starts_with("linnet.") &&
               (key.starts_with("linnet.train.") || provenance.contains(std::string(key.substr(7))));
    });
    if (!chat_template.empty()) out.add(chat_template_key, chat_template);
    for (const auto& [key, value] : provenance) out.add("linnet." + key, value);
    for (const GgufTensor& t : file.tensors()) {
        std::optional<NewTensor> made = replace(t);
        if (made)
            out.add_tensor(std::string(t.name), made->type, t.shape, std::move(made->emit));
        else
            out.add_tensor(std::string(t.name), t.type, t.shape,
                           [bytes = t.bytes](const GgufWriter::Sink& sink) {
                               constexpr std::size_t some = std::size_t{4} << 20;
                               for (std::size_t at = 0; at < bytes.size(); at += some)
                                   sink(bytes.data() + at, std::min(some, bytes.size() - at));
                           });
    }
    return out.write(path, existing, hashed);
}

}  // namespace linnet
