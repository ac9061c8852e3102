// Containers: GGUF, safetensors, JSON.
#include <cstdlib>
#include <memory>

#include "base/fields.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "fuzz/folder.h"
#include "growth.h"
#include "text/files/json.h"
#include "text/files/json_scanner.h"

namespace linnet::growth {
namespace {

template <class T>
void put(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& bytes, const std::string& text) {
    put<std::uint64_t>(bytes, text.size());
    bytes += text;
}
std::string gguf_head(std::uint64_t tensors, std::uint64_t values) {
    std::string bytes = "GGUF";
    put<std::uint32_t>(bytes, 3);
    put(bytes, tensors), put(bytes, values);
    return bytes;
}

Act reading_gguf(std::string bytes) {
    return [bytes = std::move(bytes)] {
        const Gguf file(MappedFile::view(std::as_bytes(std::span(bytes)), "growth"));
        for (const auto& [key, value] : file.values())
            if (file.find(key) != &value) std::abort();
        for (const GgufTensor& tensor : file.tensors())
            if (file.tensor(tensor.name) != &tensor) std::abort();
    };
}

Act gguf_keys(std::size_t n) {
    std::string bytes = gguf_head(0, n);
    for (std::size_t i = 0; i < n; i++) {
        put_text(bytes, "key." + std::to_string(i));
        put<std::uint32_t>(bytes, 4), put<std::uint32_t>(bytes, 1);
    }
    return reading_gguf(bytes);
}

Act gguf_strings(std::size_t n) {
    std::string bytes = gguf_head(0, 1);
    put_text(bytes, "words");
    put<std::uint32_t>(bytes, 9), put<std::uint32_t>(bytes, 8), put<std::uint64_t>(bytes, n);
    for (std::size_t i = 0; i < n; i++) put_text(bytes, "word " + std::to_string(i));
    return reading_gguf(bytes);
}

Act gguf_tensors(std::size_t n) {
    std::string bytes = gguf_head(n, 0);
    for (std::size_t i = 0; i < n; i++) {  // the last one first in the file
        put_text(bytes, "t." + std::to_string(i));
        put<std::uint32_t>(bytes, 1), put<std::uint64_t>(bytes, 8), put<std::uint32_t>(bytes, 0);
        put<std::uint64_t>(bytes, 32 * (n - 1 - i));
    }
    bytes.resize((bytes.size() + 31) / 32 * 32 + 32 * n);
    return reading_gguf(bytes);
}

std::string safetensors(std::size_t n) {
    std::string header = "{";
    for (std::size_t i = 0; i < n; i++)
        header += (i ? "," : "") + ("\"t." + std::to_string(i)) +
                  R"(":{"dtype":"F32","shape":[1],"data_offsets":[)" + std::to_string(4 * i) + "," +
                  std::to_string(4 * i + 4) + "]}";
    std::string bytes;
    put_text(bytes, header + "}");
    bytes.resize(bytes.size() + 4 * n);
    return bytes;
}

void look_up(const Safetensors& file) {
    for (const SafetensorsTensor& tensor : file.tensors())
        if (file.tensor(tensor.name) != &tensor) std::abort();
}

Act safetensors_header(std::size_t n) {
    return [bytes = safetensors(n)] {
        look_up(Safetensors(MappedFile::view(std::as_bytes(std::span(bytes)), "growth")));
    };
}

Act safetensors_index(std::size_t n) {
    auto folder = std::make_shared<fuzz::Folder>();
    folder->with("a.safetensors", safetensors(n));
    std::string map;
    for (std::size_t i = 0; i < n; i++)
        map += (i ? ",\"t." : "\"t.") + std::to_string(i) + R"(":"a.safetensors")";
    const std::string index = folder->with("model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");
    return [folder, index] { look_up(Safetensors::open(index)); };
}

std::string object(std::size_t n) {
    std::string text = "{";
    for (std::size_t i = 0; i < n; i++)
        text += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":[1,\"\\u00e9\"]";
    return text + "}";
}

Act json_keys(std::size_t n) {
    return [text = object(n)] {
        const Json json(text, "growth");
        if (json.root().is_null()) std::abort();
    };
}

Act json_tree(std::size_t n) {
    return [text = object(n)] { parse_json(text, "growth"); };
}

Act json_line(std::size_t n) {
    return [line = object(n).insert(1, "\"text\":\"" + std::string(n, 'a') + "\\n\",")] {
        std::string text;
        JsonFault fault;
        if (!JsonScanner(100).extract(line, "text", text, fault)) std::abort();
    };
}

}  // namespace

std::vector<Row> format_rows() {
    return {{"GGUF: keys", 2000, gguf_keys},
            {"GGUF: a list of strings", 2000, gguf_strings},
            {"GGUF: tensors, out of order", 2000, gguf_tensors},
            {"safetensors: tensors", 1000, safetensors_header},
            {"safetensors: an index", 1000, safetensors_index},
            {"JSON: keys of a vocabulary file", 2000, json_keys},
            {"JSON: keys of a config", 2000, json_tree},
            {"JSON: keys of a line", 2000, json_line}};
}

}  // namespace linnet::growth
