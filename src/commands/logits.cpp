// linnet inspect logits: what a model thinks comes next, as numbers.
#include <cstdio>

#include "base/file.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "generate/generator.h"

namespace linnet {
namespace {

struct Options {
    std::string model, prompt;
    bool special = false;
};

int run(const Options& options, const Globals& globals) {
    std::shared_ptr<const Model> model = Model::open(options.model);
    std::vector<TokenId> prompt = encode_prompt(model->tokenizer(), options.prompt, options.special);
    EngineOptions wanted;
    wanted.threads = globals.threads;
    SequenceSource source(model, wanted);
    char line[48];
    for (float logit : read_prompt(source, prompt)) {
        std::snprintf(line, sizeof line, "%.6f\n", static_cast<double>(logit));
        write_stdout(line);
    }
    return 0;
}

}  // namespace

Action add_inspect_logits(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    add_model(app, options->model);
    add_text(app, "-p,--prompt", options->prompt, "text before the logits", true)->required();
    app.add_flag("--special", options->special, "text that spells a control token is one");
    return [options, &globals] { return run(*options, globals); };
}

}  // namespace linnet
