#include "text/pre_tokenizer.h"

namespace linnet {

void PreTokenizer::apply(std::string& text, bool, bool, Words& words) const {
    words.clear();
    if (!text.empty()) words.emplace_back(0, text.size());
    const ClassTable& table = ClassTable::get();
    for (const PreTokenizerStep& step : steps) {
        if (step.kind != PreTokenizerStep::Kind::words) continue;
        Words next;
        for (auto [b, e] : words) {
            const char *p = text.data() + b, *end = text.data() + e;
            splitting::with_splitter(step.words, [&]<class S>() {
                while (p < end) {
                    const char* q = S::next(p, end, table);
                    next.emplace_back(static_cast<std::size_t>(p - text.data()),
                                      static_cast<std::size_t>(q - text.data()));
                    p = q;
                }
            });
        }
        words.swap(next);
    }
}

}  // namespace linnet
