#include "text/chat/carried.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/terminal.h"
#include "formats/gguf.h"
#include "text/chat/template.h"

namespace linnet {
namespace {

bool is_known(const ChosenTemplate& one) {
    try {
        recognise_chat_template(one.source, chat_templates(), one.file, one.place);
    } catch (const Error&) {
        return false;
    }
    return true;
}

}  // namespace

CarriedTemplate carried_by(const Gguf& file) {
    return {[one = ChosenTemplate{std::string(file.string(chat_template_key).value_or("")), file.path(),
                                  chat_template_key}] { return one; }};
}

ChosenTemplate choose_template(std::span<const CarriedTemplate> by_rank) {
    std::vector<ChosenTemplate> unknown;
    for (const CarriedTemplate& carried : by_rank) {
        ChosenTemplate one = carried.read ? carried.read() : ChosenTemplate();
        if (one.source.empty()) continue;
        if (!is_known(one)) {
            unknown.push_back(std::move(one));
            continue;
        }
        for (const ChosenTemplate& other : unknown)
            note(place_in(other.file, other.place) + ": no template that linnet knows; that of " + one.file +
                 " is taken");
        return one;
    }
    return unknown.empty() ? ChosenTemplate() : std::move(unknown.front());
}

}  // namespace linnet
