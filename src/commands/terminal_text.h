// What a model wrote, for a terminal.
#pragma once
#include <string>
#include <string_view>

namespace linnet {

/// Text in pieces of whole characters, as stdout may have it. A terminal: line ends stay (CR LF as LF), all
/// else that could steer it is spelled out. A pipe gets it as it is.
class TerminalText {
  public:
    std::string push(std::string_view piece);

  private:
    bool held_ = false;  // a CR, whose LF may come with the next piece
};

}  // namespace linnet
