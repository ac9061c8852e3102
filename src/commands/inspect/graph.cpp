// linnet inspect graph: the plan that runs a model, and a serial run of it that looks at every value.
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "generate/generator.h"
#include "model/look.h"
#include "model/trace.h"

namespace linnet {
namespace {

struct Options {
    std::string model, prompt = "The quick brown fox";
    std::int64_t rows = 512;
    bool training = false, check = false;
};

/// Of the bits: two runs that differ in one of them hardly ever agree in it.
std::uint64_t checksum(std::span<const float> values) {
    return hash_bytes({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

void check(const Model& model, const Options& options) {
    const Graph& graph = model.traced().graph;
    const LookedAt text{encode_prompt(model.tokenizer(), options.prompt, false), {}};
    look_at_values(model, text, [&](const Executor<float>::Watched& made) {
        if (made.values.empty()) return;
        double low = INFINITY, high = -INFINITY;
        std::int64_t wrong = 0;
        for (float x : made.values) {
            if (!std::isfinite(x))
                wrong++;
            else
                low = std::min<double>(low, x), high = std::max<double>(high, x);
        }
        const std::string& path = graph.node(made.step.result).path;
        char line[192];
        std::snprintf(line, sizeof line, "%016llx  %12.5g %12.5g  %s%s\n",
                      static_cast<unsigned long long>(checksum(made.values)), low, high, path.c_str(),
                      wrong ? "  NOT FINITE" : "");
        write_stdout(line);
        if (wrong) fail_input(model.path(), path, "finite values", std::to_string(wrong) + " that are not");
    });
}

int run(const Options& options) {
    std::shared_ptr<const Model> model = Model::open(options.model);
    if (options.check) {
        check(*model, options);
        return 0;
    }
    TracedModel traced = trace(model->config(), options.training);
    Lowering lowering;
    lowering.capacity = {options.rows, options.training ? options.rows : 1, options.rows};
    lowering.phase = options.training ? Phase::train : Phase::read;
    lowering.states = !options.training;
    const Program& program = traced.graph.program(options.training ? "loss" : "logits");
    if (model->config().kind == "encoder-decoder" && !options.training)  // what is done once for a source
        write_stdout(
            describe(traced.graph, make_plan(traced.graph, traced.graph.program("encode"), lowering)));
    write_stdout(describe(traced.graph, make_plan(traced.graph, program, lowering)));
    return 0;
}

}  // namespace

Action add_inspect_graph(CLI::App& app, const Globals&) {
    auto options = std::make_shared<Options>();
    add_model(app, options->model);
    add_integer(app, "--rows", options->rows, 1, 1 << 24, "tokens of a batch that the plan has room for");
    app.add_flag("--training", options->training, "the plan of a training step, with its backward");
    app.add_flag(
        "--check", options->check,
        "run it on one thread over --prompt: checksum, least and greatest of every value; stops at one that "
        "is not finite");
    add_text(app, "-p,--prompt", options->prompt, "text for --check");
    return [options] { return run(*options); };
}

}  // namespace linnet
