// Attention as a page to look at: a picture for each head, layer by layer.
#pragma once
#include <string>
#include <vector>

#include "model/look/look.h"

namespace linnet {

struct AttentionPage {
    std::string title;
    std::vector<std::string> queries, sources;  // tokens as they are shown; sources: of an encoder–decoder
    std::vector<AttentionMap> maps;
};

std::string attention_page(const AttentionPage& page);

}  // namespace linnet
