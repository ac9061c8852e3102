#include "train/kinds.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "base/sha256.h"
#include "commands/records.h"

namespace linnet::test {
namespace {

const char* const model = R"("context": 32, "width": 32, "layers": 2, "heads": 4, "dropout": 0.1)";
const char* const run =
    R"("batch": 8, "accumulate": 2, "eval_every": 20, "eval_batches": 2, "checkpoint_every": 10,
    "sample_tokens": 10, "optimizer": {"lr": 3e-3}, "schedule": {"warmup": 5})";

}  // namespace

std::string words_of_number(int n) {
    static const char* const names[] = {"zero", "one", "two",   "three", "four",
                                        "five", "six", "seven", "eight", "nine"};
    return n < 10 ? names[n] : words_of_number(n / 10) + " " + names[n % 10];
}

std::vector<Kind> kinds() {
    std::string pairs, classes, tags, text;
    for (int i = 0; i < 1000; i++) {
        pairs += std::to_string(i) + "\t" + words_of_number(i) + "\n";
        classes += words_of_number(i) + "\t" + (i % 2 ? "odd" : "even") + "\n";
        std::istringstream words(words_of_number(i));
        std::string line, named;
        for (std::string word; words >> word;) {
            line += (line.empty() ? "" : " ") + word;
            named += (named.empty() ? "" : " ") + std::string(1, static_cast<char>('A' + word.size() - 3));
        }
        tags += line + "\t" + named + "\n";
        text += words_of_number(i) + ". ";
    }
    auto config = [](const std::string& more, const std::string& tokenizer, const std::string& train) {
        return "{\"model\": {" + std::string(model) + ", " + more + "}, \"tokenizer\": " + tokenizer +
               ", \"train\": {" + run + train + "}}";
    };
    const std::string bert = R"("kind": "encoder", "segments": 2, "norm": {"placement": "post"},
        "embedding": {"norm": true, "norm_last": true})";
    return {
        {"masked",
         config(bert, R"({"kind": "wordpiece", "vocab_size": 300})", R"(, "masked": {"words": true})"), text,
         "data.txt", 40},
        {"classes",
         config(
             R"("kind": "encoder", "position": {"kind": "bits"}, "embedding": {"scale": 20}, "pooling": "last", "head": {"kind": "classes", "transform": true})",
             R"({"kind": "char"})", ""),
         classes, "data.tsv", 60},
        {"tags",
         config(R"("kind": "encoder")", R"({"kind": "bpe", "vocab_size": 300})", R"(, "objective": "tags")"),
         tags, "data.tsv", 40},
        {"pairs",
         config(R"("kind": "encoder-decoder", "label_smoothing": 0.1, "position": {"kind": "sinusoidal"})",
                R"({"kind": "char"})", ""),
         pairs, "data.tsv", 60},
        {"spans",
         config(R"("kind": "encoder-decoder", "norm": {"kind": "rms"}, "position": {"kind": "none"},
            "attention": {"bias": false, "scale": 1, "buckets": 8, "reach": 16}, "ffn": {"width": 64, "gated": true, "bias": false})",
                R"({"kind": "bpe", "vocab_size": 300})", R"(, "objective": "spans")"),
         text, "data.txt", 40},
        {"replaced",
         config(bert, R"({"kind": "wordpiece", "vocab_size": 300})", R"(, "objective": "replaced")"), text,
         "data.txt", 60},
        {"answers of an LSTM that looks at its source",
         config(R"("kind": "encoder-decoder", "mixer": "lstm", "position": {"kind": "none"},
            "ffn": {"kind": "none"}, "attention": {"score": "additive"})",
                R"({"kind": "char"})", ""),
         pairs, "data.tsv", 60},
        {"masked with pairs",
         config(bert + R"(, "head": {"next": true})", R"({"kind": "wordpiece", "vocab_size": 300})", ""),
         text, "data.txt", 40},
        {"masked under projected keys",
         config(bert + R"(, "attention": {"projected": [8, 16], "projected_share": "key-value"})",
                R"({"kind": "wordpiece", "vocab_size": 300})", ""),
         text, "data.txt", 40},
        {"tags under projected keys",
         config(R"("kind": "encoder", "attention": {"projected": 4, "projected_share": "layerwise"})",
                R"({"kind": "bpe", "vocab_size": 300})", R"(, "objective": "tags")"),
         tags, "data.tsv", 40},
    };
}

std::vector<std::string> set(std::initializer_list<const char*> settings) {
    std::vector<std::string> all;
    for (const char* setting : settings) all.insert(all.end(), {"--set", setting});
    return all;
}

Kind kind_named(const std::string& name) {
    for (const Kind& kind : kinds())
        if (kind.name == name) return kind;
    throw std::out_of_range(name);
}

Place::Place(const Kind& kind) : data(s / kind.file) {
    write_text(s / "config.json", kind.config);
    write_text(data, kind.data);
}

Outcome Place::train(const std::string& out, int steps, std::vector<std::string> more) const {
    std::vector<std::string> all{"train", s / "config.json", "--data",  data,
                                 "--out", s / out,           "--steps", std::to_string(steps)};
    all.insert(all.end(), more.begin(), more.end());
    return run_linnet(all);
}

std::string Place::hash(const std::string& out) const {
    return sha256(read_text(s / (out + "/last.gguf")));
}

std::vector<double> Place::losses(const std::string& out) const {
    std::vector<double> all;
    for (const nlohmann::json& record : records(read_text(s / (out + "/log.jsonl")), "step"))
        all.push_back(record["loss"]);
    return all;
}

}  // namespace linnet::test
