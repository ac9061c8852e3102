// linnet inspect graph: the plan that runs a model, and a serial run of all rows that looks at every value.
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json_line.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/text_input.h"
#include "generate/generator.h"
#include "model/look/look.h"
#include "model/trace/row_room.h"
#include "model/trace/trace.h"
#include "text/naming.h"

namespace linnet {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
    std::string model, file, prompt = "The quick brown fox";
    std::int64_t rows = 512;
    bool training = false, check = false, json = false;
};

/// Of the bits: two runs that differ in one of them hardly ever agree in it.
std::uint64_t checksum(std::span<const float> values) {
    return hash_bytes({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

void put(const Json& record) {
    write_stdout(json_line(record));
}

/// The plan as describe() tells it, an object for each step and one for all.
void put_plan(const Graph& graph, const Plan& plan) {
    for (std::size_t i = 0; i < plan.steps.size(); i++) {
        const PlanStep& s = plan.steps[i];
        const Node& node = graph.node(s.node);
        Json inputs = Json::array();
        for (NodeId input : inputs_of(graph, s)) inputs.push_back(graph.node(input).path);
        put({{"step", i},
             {"kind", name_of(s.kind)},
             {"op", node.op->name},
             {"path", graph.node(s.result).path},
             {"width", graph.node(s.result).width},
             {"barrier", s.barrier},
             {"inputs", inputs},
             {"attributes", node.attributes.text()}});
    }
    put({{"steps", plan.steps.size()},
         {"barriers", plan.barriers()},
         {"arena_bytes", plan.arena_bytes},
         {"rows", capacity_of(graph, plan.lowering, 0)}});
}

void check(const Model& model, const Options& options) {
    const Graph& graph = model.traced().graph;
    std::optional<std::string> given;
    if (options.file.empty()) given = options.prompt;
    const std::string prompt = prompt_text(given, options.file, false);
    const LookedAt text{naming(prompt_name(given, options.file),
                               [&] { return encode_prompt(model.tokenizer(), prompt, false); }),
                        {}};
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
        char sum[20], line[192];
        std::snprintf(sum, sizeof sum, "%016llx", static_cast<unsigned long long>(checksum(made.values)));
        std::snprintf(line, sizeof line, "%s  %12.5g %12.5g  %s%s\n", sum, low, high, path.c_str(),
                      wrong ? "  NOT FINITE" : "");
        if (options.json)
            put({{"path", path}, {"checksum", sum}, {"least", low}, {"greatest", high}, {"wrong", wrong}});
        else
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
    lowering.capacity = capacities(
        traced.graph,
        {.tokens = options.rows, .outputs = options.training ? options.rows : 1, .beside = options.rows});
    lowering.phase = options.training ? Phase::train : Phase::read;
    lowering.states = lowering.chosen_only = !options.training;
    auto show = [&](const Program& program) {
        const Plan plan = make_plan(traced.graph, program, lowering);
        options.json ? put_plan(traced.graph, plan) : write_stdout(describe(traced.graph, plan));
    };
    const Program& program = traced.graph.program(options.training ? "loss" : "logits");
    if (model->config().kind == "encoder-decoder" && !options.training)  // what is done once for a source
        show(traced.graph.program("encode"));
    show(program);
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
    auto* prompt = add_text(app, "-p,--prompt", options->prompt, "text for --check");
    add_text(app, "-f,--file", options->file, "text for --check, from a file; -: stdin")
        ->type_name("FILE")
        ->excludes(prompt);
    app.add_flag("--json", options->json, "one JSON object per step, or with --check per value");
    return [options] { return run(*options); };
}

}  // namespace linnet
