#include "commands/tiny.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <utility>

#include "formats/gguf.h"

namespace linnet::test {

std::string counting_text() {
    std::string text;
    for (int round = 0; round < 200; round++) text += "one two three four five six seven eight nine ten\n";
    return text;
}

std::string tiny_config() {
    return R"({"model": {"context": 32, "width": 16, "layers": 1, "heads": 2},
               "tokenizer": {"kind": "char"},
               "train": {"batch": 8, "steps": 60, "eval_every": 30, "eval_batches": 2, "checkpoint_every": 20,
                         "sample_tokens": 20, "optimizer": {"lr": 0.01}, "schedule": {"warmup": 5}}})";
}

const std::string& tiny_model() {
    static Scratch folder;
    static const std::string path = [] {
        write_text(folder / "text", counting_text());
        write_text(folder / "config.json", tiny_config());
        Outcome made = run_linnet({"train", folder / "config.json", "--data", folder / "text", "--out",
                                   folder / "out", "--threads", "1"});
        if (made.exit != 0) throw std::runtime_error("the tiny model could not be trained: " + made.err);
        return folder / "out/model.gguf";
    }();
    return path;
}

Workplace::Workplace(std::string before) : before_(std::move(before)) {
    write_text(s / "text", counting_text());
}

Outcome Workplace::operator()(const std::string& line) const {
    return run_shell("cd '" + s.path + "'\n" + before_ + "\n" + line);
}
void Workplace::refuses(const std::string& line, int exit, const std::string& said) const {
    CAPTURE(line);
    const Outcome refused = (*this)(line);
    CHECK(refused.exit == exit);
    CHECK_MESSAGE(is_one_error_line(refused.err), refused.err);
    CHECK_MESSAGE(has(refused.err, said), refused.err);
}

bool is_one_error_line(const std::string& err) {
    return err.starts_with("linnet: error: ") && err.find('\n') == err.size() - 1;
}

void with_template(const std::string& from, const std::string& to, const std::string& source) {
    const Gguf file(from);
    GgufWriter writer;
    for (std::size_t i = 0; i < file.values().size(); i++)
        writer.add_stored(std::string(file.values()[i].first), file.stored_value(i));
    writer.add("tokenizer.chat_template", source);
    for (const GgufTensor& tensor : file.tensors())
        writer.add_tensor(std::string(tensor.name), tensor.type, tensor.shape,
                          [bytes = tensor.bytes](const auto& sink) { sink(bytes.data(), bytes.size()); });
    writer.write(to);
}

const char chatml_template[] =
    "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>'}}";

}  // namespace linnet::test
