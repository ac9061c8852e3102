// linnet chat: a conversation with a model, on a terminal or of one message from a pipe.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "base/signals.h"
#include "base/split.h"
#include "base/terminal.h"
#include "commands/adapter_options.h"
#include "commands/chat/line_editor.h"
#include "commands/chat/session.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/text_input.h"
#include "text/chat/carried.h"

namespace linnet {
namespace {

/// How long a model without a template goes on where --tokens does not say.
constexpr std::int64_t tokens_of_a_continuation = 128;

struct Options {
    std::string model, system, form, load;
    std::vector<AdapterChoice> adapters;
    std::int64_t context = 0;
    DType state = EngineOptions().state;
    TextSettings text;
    bool length_given = false;
};

/// What --template names; else what the template that the model or an adapter carries means. Without any the
/// model continues text.
ChatTemplate template_of(const Options& options, const Model& model) {
    if (!options.form.empty()) return open_chat_template(options.form, "--template");
    const ChosenTemplate carried = choose_template(model.carried_templates());
    if (carried.source.empty()) return open_chat_template("plain", "--template");
    return recognise_chat_template(carried.source, chat_templates(), carried.file, carried.place);
}

void introduce(const Model& model, const ChatTemplate& form, std::int64_t context, bool asks) {
    if (form.continues)
        note(model.path() +
             ": this model continues text and does not answer; what is typed is a beginning, from which it "
             "goes on (a model that was trained to answer brings a chat template, or --template names it)");
    if (asks)
        note(form.name + " template, context of " + grouped(static_cast<std::uint64_t>(context)) +
                 (context == 1 ? " token" : " tokens") +
                 "; /help lists commands, Ctrl-C stops an answer, Ctrl-D ends",
             true);
}

/// Until Ctrl-D, /exit or a signal to end.
int converse(ChatSession& session) {
    LineEditor editor(chat_history_path());
    bool told = false;
    for (;;) {
        const LineEditor::Input input = editor.read(">");
        if (input.event == LineEditor::Event::end) return 0;
        if (input.event == LineEditor::Event::interrupt) {
            if (!std::exchange(told, true)) note("(Ctrl-D or /exit ends)", true);
            continue;
        }
        if (!session.take(input.text)) return 0;
        forget_interrupt();
        if (int signal = stop_signal()) return 128 + signal;
    }
}

int run(Options& options, const Globals& globals) {
    install_stop_signals();
    const bool asks = ::isatty(STDIN_FILENO);
    std::vector<ChatMessage> messages;
    if (!options.load.empty()) messages = load_messages(options.load);
    const std::string message = asks ? "" : prompt_text(std::nullopt, "", false);
    std::shared_ptr<const Model> model = open_with_adapters(options.model, options.adapters);
    if (model->config().kind != "decoder")
        fail_input(model->path(), "model.kind", "decoder", model->config().kind,
                   model->config().has_decoder() ? "linnet generate answers sources"
                                                 : "linnet predict and linnet embed serve encoders");
    const ChatTemplate form = template_of(options, *model);
    if (form.continues && !options.length_given) options.text.generate.tokens = tokens_of_a_continuation;
    if (options.text.seed < 0) options.text.seed = static_cast<std::int64_t>(std::random_device{}());
    GrammarFiles files(model->tokenizer());
    resolve(options.text, files, Exit::usage);
    EngineOptions engine;
    engine.context = options.context;
    engine.threads = globals.threads;
    engine.state = options.state;
    EngineSource source(model, engine);
    Conversation conversation(source, model->tokenizer(), form);
    ChatSession session(conversation, model->tokenizer(), form, options.text, files);
    session.require_spelled(input_name(options.load), messages);
    session.require_spelled("--system", options.system);
    conversation.set_messages(messages);
    if (!options.system.empty()) conversation.set_system(options.system);
    introduce(*model, form, source.context(), asks);
    if (asks && !options.load.empty()) note(input_name(options.load) + ": " + session.loaded());
    if (asks) return converse(session);
    if (trimmed(message).empty()) fail_input("stdin", "", "a message", "nothing");
    session.say(message, "stdin");
    const int signal = stop_signal();
    return signal ? 128 + signal : 0;
}

}  // namespace

Action add_chat(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    add_model(app, options->model);
    add_adapters(app, options->adapters);
    add_text(app, "--system", options->system,
             "text that stands before the conversation: who answers, and how");
    add_text(app, "--template", options->form,
             "how the model's conversations are marked: a name, of " +
                 joined(names_of(chat_templates()), " ") + ", or a file of their form")
        ->type_name("TEMPLATE")
        ->default_str("the model file's own");
    add_text(app, "--load", options->load,
             "go on with a conversation that /save wrote, or any list of messages")
        ->type_name("FILE");
    options->text.generate.tokens = -1;
    add_text_options(app, options->text);
    app.get_option("--tokens")
        ->default_str("-1; where the model continues text " + std::to_string(tokens_of_a_continuation));
    app.remove_option(app.get_option("--" + std::string(unused_setting)));
    add_context(app, options->context, 1, "context length in tokens");
    add_state_type(app, options->state);
    app.footer("A message that begins with / is one of these commands, which /help explains: " +
               joined(chat_command_names()) +
               ". What is typed on a terminal is kept, for you alone to read, in "
               "~/.local/state/linnet/chat_history (below XDG_STATE_HOME, where it is set).");
    return [options, &globals, &app] {
        options->length_given = app.count("--tokens") > 0;
        return run(*options, globals);
    };
}

}  // namespace linnet
