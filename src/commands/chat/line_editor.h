// Messages typed on a terminal, by libedit: editing, a history, and several lines as one message.
#pragma once
#include <memory>
#include <string>

namespace linnet {

/// One at a time. The terminal is as it was whenever no call is under way.
class LineEditor {
  public:
    /// `history`: the file of what was typed before, read and added to; empty, unreadable or not to be
    /// written: none, without a word.
    explicit LineEditor(const std::string& history);
    ~LineEditor();
    LineEditor(const LineEditor&) = delete;
    LineEditor& operator=(const LineEditor&) = delete;

    enum class Event { text, interrupt, end };
    struct Input {
        Event event;
        std::string text;  // without the line end
    };
    /// A message: one line, or several that were pasted, typed with Alt-Enter between them, or that end with
    /// a backslash. `interrupt`: Ctrl-C; what was typed is dropped. `end`: Ctrl-D on an empty line, or the
    /// terminal is gone. Throws Stopped for other stop signals (install_stop_signals() first).
    Input read(const std::string& prompt);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Where the history of `linnet chat` is: below $XDG_STATE_HOME, else ~/.local/state; empty without a home.
std::string chat_history_path();

}  // namespace linnet
