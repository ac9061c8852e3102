// Models that are trained here and go out as Hugging Face folders mean to PyTorch what they mean to us.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "commands/tiny.h"

using namespace linnet::test;

namespace {

struct Kind {
    const char* name;
    std::vector<std::string> settings;
};

std::vector<double> numbers_of(const std::string& lines) {
    std::istringstream in(lines);
    std::vector<double> numbers;
    for (double x = 0; in >> x;) numbers.push_back(x);
    return numbers;
}

void compare(const std::vector<double>& ours, const std::vector<double>& theirs) {
    REQUIRE(ours.size() == theirs.size());
    for (std::size_t i = 0; i < ours.size(); i++) CHECK(std::abs(ours[i] - theirs[i]) < 1e-4);
}

}  // namespace

TEST_CASE("a llama and a gpt2 trained here, written as folders, give PyTorch's logits") {
    Workplace w;
    const auto recorded = nlohmann::json::parse(read_text("tests/model/convert/folder_logits.json"));
    const std::string script = std::filesystem::absolute("tests/model/convert/folder_logits.py").string();
    const std::string ids = "111 110 101 32 116 119 111 32";  // the prompt's bytes
    for (const Kind& kind :
         {Kind{"gpt2", {}},
          Kind{"llama",
               {"kv_heads=2", "norm.kind=rms", "position.kind=rope", "attention.bias=false", "ffn.bias=false",
                "ffn.gated=true", "ffn.activation=silu", "ffn.width=48", "tie_embeddings=false"}}}) {
        CAPTURE(kind.name);
        std::string set;
        for (const std::string& setting : kind.settings) set += " --set model." + setting;
        write_text(w.s / "config.json", R"({"model": {"context": 32, "width": 32, "layers": 2, "heads": 4},
            "tokenizer": {"kind": "byte"}, "train": {"batch": 8, "steps": 40, "optimizer": {"lr": 0.005},
            "schedule": {"warmup": 5}}})");
        // The scalar kernels train the same bits on every machine.
        const std::string name = kind.name;
        REQUIRE(w("\"$LINNET\" train config.json --data text --isa scalar --out run-" + name + set).exit ==
                0);
        REQUIRE(w("\"$LINNET\" convert run-" + name + "/model.gguf " + name).exit == 0);
        const std::vector<double> ours =
            numbers_of(w("\"$LINNET\" inspect logits -m " + name + " -p 'one two ' --kv-type f32").out);
        compare(ours, recorded[name]);
        const Outcome torch =
            w("PATH=/usr/bin:$PATH python3 '" + script + "' " + name + " " + ids);  // where it has PyTorch
        if (torch.exit == 0) compare(ours, nlohmann::json::parse(torch.out));
    }
}
