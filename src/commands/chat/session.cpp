#include "commands/chat/session.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/output.h"
#include "base/split.h"
#include "base/terminal.h"
#include "commands/options.h"
#include "commands/terminal_text.h"

namespace linnet {

/// A row of the table: what is typed, what /help says, what it does.
struct ChatCommand {
    const char *name, *argument, *help;
    void (*run)(ChatSession& session, const std::string& argument);

    static std::span<const ChatCommand> all();
};

std::span<const ChatCommand> ChatCommand::all() {
    using Session = ChatSession;
    using Text = const std::string&;
    static constexpr ChatCommand table[] = {
        {"/help", "", "this list", [](Session& s, Text) { s.help(); }},
        {"/system", "[TEXT]",
         "sets the system text, which stands before the conversation (\"\": none); shows it",
         [](Session& s, Text text) { s.system(text); }},
        {"/reset", "", "forgets the conversation, but not the system text",
         [](Session& s, Text) { s.reset(); }},
        {"/undo", "", "takes the last message and its answer back", [](Session& s, Text) { s.undo(); }},
        {"/retry", "", "answers the last message once more", [](Session& s, Text) { s.retry(); }},
        {"/save", "[--overwrite] FILE", "writes the conversation: JSON, a list of role and content",
         [](Session& s, Text text) { s.save(text); }},
        {"/load", "FILE", "goes on with a conversation from such a file",
         [](Session& s, Text text) { s.load(text); }},
        {"/set", "[NAME VALUE]", "changes how answers are written; alone it shows how they are",
         [](Session& s, Text text) { s.set(text); }},
        {"/exit", "", "ends the program, as Ctrl-D does", [](Session& s, Text) { s.ended_ = true; }},
    };
    return table;
}

namespace {

/// "1 turn", "2 turns".
std::string counted(std::size_t count, const std::string& what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string shown(const Field& field) {
    return value_of(field).dump();
}

std::string without_quotes(const std::string& text) {
    const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
    return quoted ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

std::vector<std::string> chat_command_names() {
    return names_of(ChatCommand::all());
}

void ChatSession::help() const {
    for (const ChatCommand& each : ChatCommand::all()) {
        std::string line = std::string(each.name) + (*each.argument ? " " : "") + each.argument;
        line.resize(std::max<std::size_t>(line.size() + 2, 26), ' ');
        const int width = terminal_width();
        if (width < 60)
            tell(line + "\n    " + each.help);
        else
            tell(line + folded(each.help, width, 26, static_cast<int>(line.size())));
    }
    tell(
        "A message that begins with / is typed with //. Alt-Enter, or \\ at a line's end, begins a further "
        "line; "
        "pasted lines are one message. Ctrl-C stops an answer.");
}

void ChatSession::system(const std::string& argument) {
    if (!argument.empty()) conversation_.set_system(without_quotes(argument));
    const std::string& text = conversation_.system();
    tell(text.empty() ? "no system text" : "system text: " + text);
}

void ChatSession::reset() {
    conversation_.reset();
    answers_ = 0;
    tell("the conversation starts over");
}

void ChatSession::undo() {
    const auto message = conversation_.undo();
    if (!message) fail_input("", "/undo", "a message to take back", "none");
    tell("taken back: " + *message);
}

void ChatSession::retry() {
    answer([&](const GenerateOptions& options, const Emit& emit) {
        return conversation_.retry(options, emit, settings_.special);
    });
}

void ChatSession::save(const std::string& argument) {
    const std::string option = "--overwrite";
    const bool overwrite = argument == option || argument.starts_with(option + " ");
    const std::string path(trimmed(overwrite ? argument.substr(option.size()) : argument));
    if (path.empty()) fail_input("", "/save", "the name of a file", "none");
    refuse_stdout("/save", path);
    prepare_output(path, existing(overwrite));
    save_messages(path, conversation_.messages(), existing(overwrite));
    tell(written_line(path));
}

void ChatSession::load(const std::string& argument) {
    // A conversation is typed on stdin.
    if (argument.empty() || argument == "-")
        fail_input("", "/load", "the name of a file", argument.empty() ? "none" : quoted(argument));
    const std::vector<ChatMessage> messages = load_messages(argument);
    conversation_.set_messages(messages);
    if (messages.empty() || messages[0].role != "system") conversation_.set_system("");
    answers_ = 0;
    const auto turns = conversation_.turns();
    const bool open = !turns.empty() && !turns.back().answer;
    tell(counted(turns.size(), "turn") + (open ? "; /retry answers the last message" : ""));
}

void ChatSession::set(const std::string& argument) {
    TextSettings changed = settings_;
    std::vector<Field> fields = text_fields(changed);
    std::erase_if(fields, [](const Field& f) { return f.key == unused_setting; });
    const std::size_t space = argument.find_first_of(" =");
    if (argument.empty()) {
        for (const Field& field : fields) tell(field.key + " " + shown(field) + "  (" + field.help + ")");
        return;
    }
    const std::string name = argument.substr(0, space);
    const std::string value(space == std::string::npos ? "" : trimmed(argument.substr(space + 1)));
    const auto field =
        std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.key == name; });
    if (field != fields.end() && value.empty()) return tell(name + " " + shown(*field));
    if (value == "-") fail_input("", "/set", "a value", quoted(value));
    const bool constrains = name == "grammar" || name == "json-schema";
    const bool none = constrains && value == "\"\"";
    apply_setting(fields, name + "=" + (none ? "" : value), "/set");
    if (constrains) {
        if (!none) (name == "grammar" ? changed.json_schema : changed.grammar).clear();
        files_.forget();  // a file may have changed since
    }
    resolve(changed, files_, Exit::input, "/set");
    settings_ = changed;
    if (name == "seed") answers_ = 0;
    tell(name + " " + shown(*field));
}

void ChatSession::command(const std::string& typed) {
    const std::size_t end = std::min(typed.find_first_of(" \n"), typed.size());
    const std::string name = typed.substr(0, end);
    for (const ChatCommand& each : ChatCommand::all()) {
        if (name != each.name) continue;
        return each.run(*this, std::string(trimmed(typed.substr(end))));
    }
    fail_input("", "", "a command, as /help lists them", quoted(name),
               did_you_mean(name, chat_command_names(), "a message that begins with / is typed with //"));
}

void ChatSession::say_how_it_ended(const ChatReply& reply) const {
    auto say = [](const std::string& text) { tell("[" + text + "]", true); };
    if (reply.forgotten > 0)
        say("the context is full: " +
            (reply.forgotten == 1 ? "the oldest turn is"
                                  : "the oldest " + counted(reply.forgotten, "turn") + " are") +
            " left out from now on");
    if (reply.end == GenerateEnd::context)
        say("the context is full, and this answer ends with it; /undo or /reset makes room");
    if (reply.end == GenerateEnd::interrupted)
        say(reply.written > 0 ? "interrupted" : "interrupted; the message is taken back");
}

void ChatSession::answer(const Ask& ask) {
    GenerateOptions options = settings_.generate;
    options.sampler.seed =
        static_cast<std::uint64_t>(settings_.seed) + static_cast<std::uint64_t>(answers_++);
    TerminalText terminal;
    bool begun = false;
    char last = '\n';
    auto emit = [&](std::optional<TokenId>, std::string_view text) {
        if (!begun) text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
        if (text.empty()) return;
        begun = true;
        last = text.back();
        write_stdout(terminal.push(text));
        flush_stdout();
    };
    auto end_line = [&] {
        if (last != '\n' || !begun) write_stdout("\n");
        flush_stdout();
    };
    try {
        const ChatReply reply = ask(options, emit);
        end_line();
        say_how_it_ended(reply);
    } catch (const Error&) {
        if (begun) end_line();
        throw;
    }
}

void ChatSession::say(const std::string& message) {
    answer([&](const GenerateOptions& options, const Emit& emit) {
        return conversation_.say(message, options, emit, settings_.special);
    });
}

bool ChatSession::take(const std::string& typed) {
    if (trimmed(typed).empty()) return true;
    try {
        if (typed.starts_with("/") && !typed.starts_with("//"))
            command(typed);
        else
            say(typed.starts_with("//") ? typed.substr(1) : typed);
    } catch (const Error& error) {
        tell(error.what());
    }
    return !ended_;
}

}  // namespace linnet
