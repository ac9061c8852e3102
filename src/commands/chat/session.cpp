#include "commands/chat/session.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "base/json_line.h"
#include "base/nearest.h"
#include "base/output.h"
#include "base/split.h"
#include "base/terminal.h"
#include "commands/options.h"
#include "commands/terminal_text.h"
#include "text/naming.h"

namespace linnet {

/// A row of the table: what is typed, what /help says, what it does.
struct ChatCommand {
    const char *name, *argument, *help;  // argument "": it takes none
    void (*run)(ChatSession& session, const std::string& argument);
    bool many_lines = false;  // its argument may have several
    std::array<std::string_view, 2> also{};

    static std::span<const ChatCommand> all();
    /// Null where there is no such command.
    static const ChatCommand* named(std::string_view name);
};

std::span<const ChatCommand> ChatCommand::all() {
    using Session = ChatSession;
    using Text = const std::string&;
    static constexpr ChatCommand table[] = {
        {"/help", "", "this list", [](Session& s, Text) { s.help(); }},
        {"/system", "[TEXT]",
         "sets the system text, which stands before the conversation (\"\": none); shows it",
         [](Session& s, Text text) { s.system(text); }, true},
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
        {"/exit",
         "",
         "ends the program, as /quit, /bye and Ctrl-D do",
         [](Session& s, Text) { s.ended_ = true; },
         false,
         {"/quit", "/bye"}},
    };
    return table;
}

const ChatCommand* ChatCommand::named(std::string_view name) {
    for (const ChatCommand& each : all())
        if (name == each.name || (!name.empty() && std::ranges::count(each.also, name) > 0)) return &each;
    return nullptr;
}

namespace {

constexpr const char* slashes_begin_a_message = "a message that begins with / is typed with //";

/// Values as JSON, which /set takes, too.
std::string shown(const Field& field) {
    return dumped(value_of(field));
}

std::string shown(const TextList& list) {
    const std::vector<std::string>& texts = *list.target;
    if (texts.size() > 1) return dumped(nlohmann::json(texts));
    return dumped(nlohmann::json(texts.empty() ? "" : texts[0]));
}

std::string without_quotes(const std::string& text, char quote = '"') {
    const bool quoted = text.size() >= 2 && text.front() == quote && text.back() == quote;
    return quoted ? text.substr(1, text.size() - 2) : text;
}

/// The file that a typed text names: in quotes of either kind or none, "~/" for the home folder.
std::string path_of(const std::string& text) {
    const std::string path = without_quotes(text, text.starts_with('\'') ? '\'' : '"');
    const char* home = std::getenv("HOME");
    return home && path.starts_with("~/") ? home + path.substr(1) : path;
}

/// A value of /set: a JSON string is what it spells.
std::string value_in(const std::string& text) {
    const nlohmann::json value = parse_or_discard(text);
    return value.is_string() ? value.get<std::string>() : without_quotes(text);
}

/// The same of a list: one text, a JSON list of them, or "" for none.
std::vector<std::string> values_in(const std::string& text) {
    const nlohmann::json list = parse_or_discard(text);
    if (list.is_array() && std::ranges::all_of(list, [](const auto& each) { return each.is_string(); }))
        return list;
    const std::string value = value_in(text);
    return value.empty() ? std::vector<std::string>() : std::vector{value};
}

}  // namespace

std::vector<std::string> chat_command_names() {
    std::vector<std::string> names;
    for (const ChatCommand& each : ChatCommand::all()) {
        names.emplace_back(each.name);
        for (std::string_view other : each.also)
            if (!other.empty()) names.emplace_back(other);
    }
    return names;
}

void ChatSession::help() const {
    for (const ChatCommand& each : ChatCommand::all()) {
        std::string line = std::string(each.name) + (*each.argument ? " " : "") + each.argument;
        line.resize(std::max<std::size_t>(line.size() + 2, 26), ' ');
        const int width = stderr_width();
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
    if (!argument.empty()) {
        const std::string wanted = without_quotes(argument);
        require_spelled("/system", wanted);
        conversation_.set_system(wanted);
    }
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
    const std::string path =
        path_of(std::string(trimmed(overwrite ? argument.substr(option.size()) : argument)));
    if (path.empty()) fail_input("", "/save", "the name of a file", "none");
    refuse_stdout("/save", path);
    prepare_output(path, existing(overwrite));
    save_messages(path, conversation_.messages(), existing(overwrite));
    tell(written_line(path));
}

void ChatSession::load(const std::string& argument) {
    const std::string path = path_of(argument);
    // A conversation is typed on stdin.
    if (path.empty() || path == "-")
        fail_input("", "/load", "the name of a file", path.empty() ? "none" : quoted(path));
    const std::vector<ChatMessage> messages = load_messages(path);
    require_spelled(path, messages);
    conversation_.set_messages(messages);
    if (messages.empty() || messages[0].role != "system") conversation_.set_system("");
    answers_ = 0;
    tell(loaded());
}

std::string ChatSession::loaded() const {
    const auto turns = conversation_.turns();
    const bool open = !turns.empty() && !turns.back().answer;
    return counted(turns.size(), "turn") + (open ? "; /retry answers the last message" : "");
}

namespace {

std::vector<Field> chat_fields(TextSettings& settings) {
    std::vector<Field> fields = text_fields(settings);
    std::erase_if(fields, [](const Field& f) { return f.key == unused_setting; });
    return fields;
}

/// "NAME VALUE", "NAME=VALUE" and "NAME = VALUE"; the value is empty where there is none.
std::pair<std::string, std::string> name_and_value(const std::string& argument) {
    const std::size_t end = std::min(argument.find_first_of(" ="), argument.size());
    std::string_view value = trimmed(std::string_view(argument).substr(end));
    if (value.starts_with('=')) value = trimmed(value.substr(1));
    return {argument.substr(0, end), std::string(value)};
}

}  // namespace

void ChatSession::show_settings() {
    for (const Field& field : chat_fields(settings_))
        tell(field.key + " " + shown(field) + "  (" + field.help + ")");
    for (const TextList& list : text_lists(settings_))
        tell(list.key + " " + shown(list) + "  (" + list.help + ")");
}

void ChatSession::set(const std::string& argument) {
    if (argument.empty()) return show_settings();
    const auto [typed, value] = name_and_value(argument);
    const std::string name = text_key(typed);
    std::vector<std::string> names;
    const std::vector<Field> fields = chat_fields(settings_);
    const std::vector<TextList> lists = text_lists(settings_);
    for (const Field& field : fields) names.push_back(field.key);
    for (const TextList& list : lists) names.push_back(list.key);
    require_text_key(name, names, "/set", typed);
    if (!value.empty()) change(name, value);
    for (const Field& field : fields)
        if (field.key == name) tell(name + " " + shown(field));
    for (const TextList& list : lists)
        if (list.key == name) tell(name + " " + shown(list));
}

void ChatSession::change(const std::string& name, const std::string& value) {
    TextSettings changed = settings_;
    std::vector<Field> fields = chat_fields(changed);
    const std::vector<TextList> lists = text_lists(changed);
    const auto list = std::ranges::find(lists, name, &TextList::key);
    const bool constrains = name == "grammar" || name == "json-schema";
    if (list != lists.end()) {
        *list->target = values_in(value);
        if (std::ranges::count(*list->target, "") > 0) fail_input("/set", name, "a value", "an empty text");
    } else if (constrains) {
        const std::string path = path_of(value_in(value));
        if (path == "-") fail_input("/set", name, "the name of a file", quoted(path));
        if (!path.empty()) changed.grammar.clear(), changed.json_schema.clear();
        (name == "grammar" ? changed.grammar : changed.json_schema) = path;
        files_.forget();  // a file may have changed since
    } else {
        apply_setting(fields, name + "=" + value_in(value), "/set");
    }
    resolve(changed, files_, Exit::input, "/set");
    settings_ = changed;
    if (name == "seed") answers_ = 0;
}

void ChatSession::command(const ChatCommand& command, const std::string& typed, const std::string& argument) {
    if (!*command.argument && !argument.empty())
        fail_input("", typed, "nothing behind it", quoted(argument), slashes_begin_a_message);
    command.run(*this, argument);
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

void ChatSession::require_spelled(const std::string& name, const std::string& text) const {
    EncodeOptions encode;
    encode.parse_special = settings_.special;
    const std::string_view seen = form_.trim ? trimmed(text) : text;
    if (seen.empty()) return;
    const auto before = static_cast<std::size_t>(seen.data() - text.data());
    naming(name, [&] { behind(before, [&] { tokenizer_.encode(seen, encode); }); });
}

void ChatSession::require_spelled(const std::string& file, const std::vector<ChatMessage>& messages) const {
    for (std::size_t i = 0; i < messages.size(); i++)
        require_spelled(file + ": message " + std::to_string(i + 1), messages[i].content);
}

void ChatSession::say(const std::string& message, const std::string& name) {
    require_spelled(name, message);
    answer([&](const GenerateOptions& options, const Emit& emit) {
        return conversation_.say(message, options, emit, settings_.special);
    });
}

bool ChatSession::take(const std::string& typed) {
    const std::string text(trimmed(typed));
    if (text.empty()) return true;
    const std::size_t end = std::min(typed.find_first_of(" \t\n"), typed.size());
    const std::string name = typed.substr(0, end);
    const ChatCommand* named = ChatCommand::named(name);
    const bool one_line = text.find('\n') == text.npos;
    try {
        if (typed.starts_with("//"))
            say(typed.substr(1), "message");
        else if (named && (one_line || named->many_lines))
            command(*named, name, std::string(trimmed(typed.substr(end))));
        else if (typed.starts_with("/") && one_line)
            fail_input("", "", "a command, as /help lists them", quoted(name),
                       did_you_mean(name, chat_command_names(), slashes_begin_a_message));
        else
            say(typed, "message");
    } catch (const Error& error) {
        tell(error.what());
    }
    return !ended_;
}

}  // namespace linnet
