// What several tests need: real data where it is present, scratch folders, whole commands.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace linnet {
class Tokenizer;

/// A "byte" or "char" tokenizer, or a byte-level "bpe" of `vocab_size` tokens that `text` is counted for.
/// (text/train_tokenizer.cpp: the kernels' tests, which link this, have no tokenizers.)
std::shared_ptr<const Tokenizer> train_tokenizer(std::string_view kind, std::string_view text,
                                                 std::int32_t vocab_size, int threads);
}  // namespace linnet

namespace linnet::test {

/// The path of `name` in the folder of real data (LINNET_SHARED, else ../shared beside the checkout), or
/// nothing where it is absent; then calls skip(), so the test should just return.
std::optional<std::string> shared_data(const std::string& name);
int skipped();
/// Counts the test as skipped and prints why: `return skip("needs …");`.
void skip(const std::string& why);

/// A fresh folder that goes away with the object.
class Scratch {
  public:
    Scratch();
    ~Scratch();
    Scratch(const Scratch&) = delete;
    std::string operator/(const std::string& name) const { return path + "/" + name; }
    std::string path;
};

/// What a command did. `exit` is 128 + signal where a signal ended it.
struct Outcome {
    int exit = 0;
    std::string out, err;
};
/// Runs build/linnet (the program beside this test program) with these arguments; stdin is `input`.
Outcome run_linnet(const std::vector<std::string>& arguments, const std::string& input = {});
/// Runs a shell command line (LINNET is the program's path there).
Outcome run_shell(const std::string& line);

/// The line of the Error that `act` throws, with this exit code, or "accepted".
std::string refusal(const std::function<void()>& act, Exit exit = Exit::input);

/// A shell line that runs a command and kills it (-9) once `text` stands in `file`, if it has not ended.
std::string killed_at(const std::string& command, const std::string& text, const std::string& file);

/// `part` occurs in `text`.
bool has(const std::string& text, const std::string& part);

/// The number behind `key` where lines are "key value"; throws where no line is of that key.
double number_of(const std::string& text, const std::string& key);

void write_text(const std::string& path, const std::string& text);
std::string read_text(const std::string& path);

/// Appends the bytes of a number, for files of a binary format.
template <class T>
void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace linnet::test
