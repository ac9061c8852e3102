#include "text/normalizer.h"

namespace linnet {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    if (from.empty()) return;
    std::string out;
    out.reserve(text.size() + text.size() / 4);
    std::size_t at = 0;
    for (std::size_t hit; (hit = text.find(from, at)) != std::string::npos; at = hit + from.size()) {
        out.append(text, at, hit - at);
        out += to;
    }
    out.append(text, at);
    text.swap(out);
}

}  // namespace

void Normalizer::apply(std::string& text, bool opens) const {
    for (const NormalizerStep& step : steps) {
        switch (step.kind) {
            case NormalizerStep::Kind::prepend:
                if (opens && !text.empty()) text.insert(0, step.content);
                break;
            case NormalizerStep::Kind::replace:
                replace_all(text, step.pattern, step.content);
                break;
            default:
                break;
        }
    }
}

}  // namespace linnet
