#include "commands/chat/line_editor.h"

#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <cwchar>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_line.h"
#include "base/signals.h"
#include "base/system.h"
#include "base/terminal.h"
#include "base/utf8.h"
#include "generate/stream.h"

namespace linnet {
namespace {

constexpr std::size_t most_remembered = 1000;
constexpr std::size_t largest_history = 16 << 20;

// A terminal puts these around what is pasted, once it was asked to (xterm's "bracketed paste").
constexpr std::string_view ask_for_marks = "\x1b[?2004h", no_more_marks = "\x1b[?2004l";
constexpr wchar_t end_of_paste[] = L"\x1b[201~";

/// Readable when the window changed or the program goes on after a stop, the signal's number for each: the
/// system may hand these signals to a thread that does not wait.
int changed_read = -1, changed_write = -1;

void note_change(int signal_number) {
    const int saved = errno;
    const char number = static_cast<char>(signal_number);
    (void)!::write(changed_write, &number, 1);
    errno = saved;
}

void watch_terminal() {
    int ends[2];
    if (changed_read >= 0 || ::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
    changed_read = ends[0], changed_write = ends[1];
    struct sigaction action = {};
    action.sa_handler = note_change;
    action.sa_flags = SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    for (int signal_number : {SIGWINCH, SIGCONT}) ::sigaction(signal_number, &action, nullptr);
}

/// libedit reads characters by the locale; one that is not UTF-8 would make two of an umlaut.
void use_utf8() {
    if (std::setlocale(LC_CTYPE, "") && std::string_view(nl_langinfo(CODESET)) == "UTF-8") return;
    for (const char* name : {"C.UTF-8", "en_US.UTF-8"})
        if (std::setlocale(LC_CTYPE, name)) return;
}

void put(std::string_view text) {
    write_all(STDERR_FILENO, text.data(), text.size());
}

/// Rows between the one where the prompt begins and the cursor's, as a terminal that is `width` columns wide
/// now lays them out: one that was made narrower has folded its long rows anew.
int rows_above_cursor(int prompt, const LineInfoW& line, int width) {
    int row = 0, column = prompt;
    for (const wchar_t* c = line.buffer; c < line.cursor; c++) {
        if (*c == L'\n') {
            row += std::max(column - 1, 0) / width + 1;
            column = 0;
            continue;
        }
        const int columns = ::wcwidth(*c);
        if (columns == 2 && column % width == width - 1) column++;  // it does not fit the row
        column += columns < 0 ? 2 : columns;                        // ^A
    }
    return row + column / width;
}

std::string history_line(const std::string& text) {
    return json_line(nlohmann::json(text));
}

/// What was typed before, oldest first; lines that are none of ours are passed over. A file that has grown to
/// twice what is remembered is cut.
std::vector<std::string> read_history(const std::string& path) {
    std::vector<std::string> entries;
    std::string text;
    try {
        if (!path.empty()) text = read_file(path, largest_history);
    } catch (const Error&) {
        return {};
    }
    for (std::string_view rest = text; !rest.empty();) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        const auto entry = nlohmann::json::parse(line, nullptr, false, false);
        if (entry.is_string()) entries.push_back(entry);
    }
    if (entries.size() <= most_remembered) return entries;
    const bool cut = entries.size() > 2 * most_remembered;
    entries.erase(entries.begin(), entries.end() - most_remembered);
    if (!cut) return entries;
    try {
        std::string kept;
        for (const std::string& entry : entries) kept += history_line(entry);
        write_file(path, kept);
    } catch (const Error&) {  // another time
    }
    return entries;
}

/// A line is added: two programs do not lose each other's.
void add_to_history(const std::string& path, const std::string& text) {
    if (path.empty()) return;
    const Descriptor file(open_file(path, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY, 0600));
    if (file.fd < 0) return;
    const std::string line = history_line(text);
    write_all(file.fd, line.data(), line.size());
}

}  // namespace

struct LineEditor::Impl {
    EditLine* edit = nullptr;
    History* history = nullptr;
    std::string path, prompt;
    int prompt_columns = 0;
    Utf8Stream characters;
    std::string typed;  // characters that libedit has not asked for yet
    std::optional<Stopped> stopped;

    static Impl& of(EditLine* edit) {
        void* self = nullptr;
        el_get(edit, EL_CLIENTDATA, &self);
        return *static_cast<Impl*>(self);
    }
    static char* show_prompt(EditLine* edit) { return of(edit).prompt.data(); }

    void remember(const std::string& text) {
        HistEvent event;
        ::history(history, &event, H_ENTER, text.c_str());
    }

    void take_change() {
        bool elsewhere = false;  // a shell that stopped the program had the terminal meanwhile
        char signal_number;
        while (::read(changed_read, &signal_number, 1) > 0) elsewhere |= signal_number == SIGCONT;
        el_set(edit, EL_PREP_TERM, 1);
        if (stderr_redraws()) {
            // libedit writes prompt and line anew from where the cursor is.
            const int rows =
                elsewhere ? 0 : rows_above_cursor(prompt_columns, *el_wline(edit), stderr_width());
            put((rows > 0 ? "\x1b[" + std::to_string(rows) + "A" : "") + "\r\x1b[J");
            put(ask_for_marks);
        }
        el_resize(edit);
        el_set(edit, EL_REFRESH);
    }

    /// libedit asks this for the next character. No exception may pass through it.
    static int next(EditLine* edit, wchar_t* character) {
        Impl& self = of(edit);
        try {
            while (self.typed.empty()) {
                while (!wait_for_input(STDIN_FILENO, changed_read)) self.take_change();
                char byte;
                const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
                if (n < 0 && errno == EINTR) continue;
                if (n <= 0) return static_cast<int>(n);
                self.typed = self.characters.push({&byte, 1});
            }
        } catch (const Stopped& stopped) {
            self.characters = {};
            self.stopped = stopped;
            errno = EINTR;
            return -1;
        }
        const Char c = decode_utf8(self.typed.data(), self.typed.data() + self.typed.size());
        self.typed.erase(0, c.size);
        *character = static_cast<wchar_t>(c.code);
        return 1;
    }

    /// What is pasted stands in the line as it is, line ends and all.
    static unsigned char paste(EditLine* edit, int) {
        std::wstring text;
        for (wchar_t c; !text.ends_with(end_of_paste);) {
            if (el_wgetc(edit, &c) != 1) return CC_EOF;
            text += c;
        }
        text.resize(text.size() - std::wcslen(end_of_paste));
        std::wstring kept;
        for (std::size_t i = 0; i < text.size(); i++) {
            const bool return_alone = text[i] == L'\r' && (i + 1 == text.size() || text[i + 1] != L'\n');
            if (return_alone || text[i] == L'\n')
                kept += L'\n';
            else if (text[i] == L'\t')
                kept += L"    ";
            else if (text[i] >= L' ' && text[i] != 0x7F)
                kept += text[i];
        }
        while (kept.ends_with(L'\n')) kept.pop_back();  // Enter sends it
        if (!kept.empty() && el_winsertstr(edit, kept.c_str()) != 0) return CC_ERROR;
        return CC_REFRESH;
    }
    static unsigned char line_end(EditLine* edit, int) {
        return el_winsertstr(edit, L"\n") == 0 ? CC_REFRESH : CC_ERROR;
    }
};

LineEditor::LineEditor(const std::string& history) : impl_(std::make_unique<Impl>()) {
    use_utf8();
    watch_terminal();
    impl_->edit = el_init("linnet", stdin, stderr, stderr);
    impl_->history = history_init();
    if (!impl_->edit || !impl_->history) throw std::bad_alloc();
    EditLine* edit = impl_->edit;
    HistEvent event;
    ::history(impl_->history, &event, H_SETSIZE, static_cast<int>(most_remembered));
    ::history(impl_->history, &event, H_SETUNIQUE, 1);
    el_set(edit, EL_CLIENTDATA, impl_.get());
    el_set(edit, EL_EDITOR, "emacs");
    el_set(edit, EL_HIST, ::history, impl_->history);
    el_set(edit, EL_PROMPT_ESC, &Impl::show_prompt, '\1');
    el_set(edit, EL_GETCFN, &Impl::next);
    // As wide characters: of others libedit keeps copies that it never frees.
    el_wset(edit, EL_ADDFN, L"linnet-paste", L"Insert what is pasted", &Impl::paste);
    el_wset(edit, EL_ADDFN, L"linnet-line-end", L"Begin a further line", &Impl::line_end);
    el_set(edit, EL_BIND, "\x1b[200~", "linnet-paste", nullptr);
    for (const char* alt_enter : {"\x1b\r", "\x1b\n"})
        el_set(edit, EL_BIND, alt_enter, "linnet-line-end", nullptr);
    el_set(edit, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_set(edit, EL_SETTY, "-d", "-icrnl", "-inlcr", nullptr);  // a pasted CR LF is one line end
    // What terminals send for Home, End, Delete and words, which termcap does not always say.
    constexpr const char* keys[][2] = {
        {"\x1b[1~", "ed-move-to-beg"}, {"\x1b[H", "ed-move-to-beg"},       {"\x1b[4~", "ed-move-to-end"},
        {"\x1b[F", "ed-move-to-end"},  {"\x1b[3~", "ed-delete-next-char"}, {"\x1b[1;5C", "em-next-word"},
        {"\x1b[1;5D", "ed-prev-word"}, {"\x1b[1;3C", "em-next-word"},      {"\x1b[1;3D", "ed-prev-word"},
    };
    for (const auto& [key, does] : keys) el_set(edit, EL_BIND, key, does, nullptr);
    // Where a line is wrapped and has wide characters, libedit inserts and deletes at wrong columns; without
    // these it writes the rest of the line anew.
    for (const char* capability : {"ic", "IC", "im", "dc", "DC", "dm"})
        el_set(edit, EL_SETTC, capability, "", nullptr);
    el_source(edit, nullptr);  // a person's own bindings (~/.editrc)
    const std::vector<std::string> entries = read_history(history);
    for (const std::string& entry : entries) impl_->remember(entry);
    try {
        if (!history.empty()) make_folders(std::filesystem::path(history).parent_path().string());
        impl_->path = history;
    } catch (const Error&) {  // then none is kept
    }
}

LineEditor::~LineEditor() {
    if (impl_->edit) el_end(impl_->edit);
    if (impl_->history) history_end(impl_->history);
}

LineEditor::Input LineEditor::read(const std::string& prompt) {
    std::string text;
    for (;;) {
        const std::string shown = text.empty() ? prompt : "... ";
        impl_->prompt_columns = character_count(shown) + 1;
        impl_->prompt = stderr_colours() ? "\1\x1b[1m\1" + shown + "\1\x1b[0m\1 " : shown + " ";
        impl_->stopped.reset();
        if (stderr_redraws()) put(ask_for_marks);
        el_set(impl_->edit, EL_PREP_TERM,
               1);  // libedit would do so behind the prompt: keys typed then echo twice
        int count = 0;
        const char* line = el_gets(impl_->edit, &count);
        if (stderr_redraws()) put(no_more_marks);
        if (impl_->stopped) {
            put("\n");
            if (impl_->stopped->signal != SIGINT) throw Stopped(*impl_->stopped);
            forget_interrupt();
            return {Event::interrupt, {}};
        }
        if (!line || count <= 0) {
            put("\n");
            return {Event::end, {}};
        }
        text.append(line, static_cast<std::size_t>(count));
        if (text.ends_with('\n')) text.pop_back();
        if (!text.ends_with('\\')) break;
        text.back() = '\n';
    }
    if (text.find_first_not_of(" \n\t") != std::string::npos) {
        impl_->remember(text);
        add_to_history(impl_->path, text);
    }
    return {Event::text, std::move(text)};
}

std::string chat_history_path() {
    const char* state = std::getenv("XDG_STATE_HOME");
    const char* home = std::getenv("HOME");
    std::string folder;
    if (state && *state == '/')
        folder = state;
    else if (home && *home == '/')
        folder = std::string(home) + "/.local/state";
    return folder.empty() ? "" : folder + "/linnet/chat_history";
}

}  // namespace linnet
