// Text on an HTML page.
#pragma once
#include <string>
#include <string_view>

namespace linnet {

/// Text made safe inside an element or a quoted attribute; control bytes but newline and tab become U+FFFD.
std::string escape_html(std::string_view text);

}  // namespace linnet
