#include "generate/source.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "commands/tiny.h"
#include "generate/generator.h"
#include "model/adapter_support.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

TEST_CASE(
    "logits that are not finite name the node where they began, and an adapter as a cause where there is "
    "one") {
    const std::shared_ptr<const Model> base = Model::open(tiny_model());
    const auto refusal = [&](double scale) -> std::string {
        const auto model = with_adapters(base, {random_adapter(*base, 2, scale, 1)});
        EngineOptions options;
        options.threads = 1;
        EngineSource source(model, options);
        const std::vector<TokenId> prompt = encode_prompt(model->tokenizer(), "one two", false);
        try {
            generate(source, model->tokenizer(), prompt, {}, [](std::optional<TokenId>, std::string_view) {});
        } catch (const Error& e) {
            CHECK(e.exit() == Exit::input);
            return e.what();
        }
        return "";
    };
    CHECK(refusal(0.1).empty());
    const std::string line = refusal(1e38);
    CHECK_MESSAGE(has(line, ": blk.0."), line);
    CHECK_MESSAGE(has(line, "expected finite values, got "), line);
    CHECK_MESSAGE(has(line, "(an adapter's scale is too large, the model's weights are damaged, "), line);
    CHECK(!has(not_finite_hint(*base), "adapter"));
}
