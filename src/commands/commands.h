// The commands of the program, as one table that program.cpp assembles and that tests and README walk.
#pragma once
#include <functional>
#include <span>
#include <string>

namespace CLI {
class App;
}

namespace linnet {

/// Options that every command takes, before or after its name.
struct Globals {
    int threads = 0;     // 0: physical cores
    std::string isa;     // empty: the best usable one
    bool quiet = false;  // no progress on stderr
};

/// What a command does once its options are parsed; returns the program's exit code. Options live in storage
/// that the action shares (a shared_ptr captured by both).
using Action = std::function<int()>;

struct Command {
    const char* name;     // words divided by one space: "bench", "bench train"
    const char* summary;  // one line, lower case, no full stop
    const char* example;  // one or more shell lines, divided by \n
    /// Declares the command's options on `app`. Null: a group that only holds the commands named after it.
    Action (*add)(CLI::App& app, const Globals& globals);
};

/// In the order that help lists them; a group or a command stands before those whose names begin with its
/// own.
std::span<const Command> commands();

/// The whole program after the table: parses, runs, prints errors; returns the exit code (base/error.h).
int run_program(int argc, char** argv);

// One function per command: in `commands/NAME.cpp`, or in the folder of its first word, in the file of either
// word.
Action add_generate(CLI::App& app, const Globals& globals);
Action add_chat(CLI::App& app, const Globals& globals);
Action add_train(CLI::App& app, const Globals& globals);
Action add_plan(CLI::App& app, const Globals& globals);
Action add_finetune(CLI::App& app, const Globals& globals);
Action add_merge(CLI::App& app, const Globals& globals);
Action add_report(CLI::App& app, const Globals& globals);
Action add_eval(CLI::App& app, const Globals& globals);
Action add_embed(CLI::App& app, const Globals& globals);
Action add_predict(CLI::App& app, const Globals& globals);
Action add_convert(CLI::App& app, const Globals& globals);
Action add_quantize(CLI::App& app, const Globals& globals);
Action add_inspect(CLI::App& app, const Globals& globals);
Action add_inspect_graph(CLI::App& app, const Globals& globals);
Action add_inspect_attention(CLI::App& app, const Globals& globals);
Action add_inspect_logits(CLI::App& app, const Globals& globals);
Action add_corpus(CLI::App& app, const Globals& globals);
Action add_tokenize(CLI::App& app, const Globals& globals);
Action add_detokenize(CLI::App& app, const Globals& globals);
Action add_tokenizer_train(CLI::App& app, const Globals& globals);
Action add_tokenizer_convert(CLI::App& app, const Globals& globals);
Action add_tokenizer_verify(CLI::App& app, const Globals& globals);
Action add_bench(CLI::App& app, const Globals& globals);
Action add_bench_train(CLI::App& app, const Globals& globals);
Action add_bench_tokenize(CLI::App& app, const Globals& globals);
Action add_bench_machine(CLI::App& app, const Globals& globals);
Action add_completion(CLI::App& app, const Globals& globals);
Action add_manual(CLI::App& app, const Globals& globals);

}  // namespace linnet
