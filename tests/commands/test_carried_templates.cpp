// The chat template that chat and merge take, of a model and its adapters; and who reads it at all.
#include <doctest/doctest.h>

#include "commands/tiny.h"
#include "formats/gguf.h"
#include "support.h"
#include "text/chat/template.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// `base/model.gguf`, `own.gguf`: that with ChatML's template; an adapter for both, in a run's folder
/// (`tuned`), as `other.gguf` with a template that linnet does not know, and as PEFT has it (`peft`).
struct Adapted : Workplace {
    Adapted() {
        must("$LINNET train --data text --threads 1 --steps 1 --out base");
        must("$LINNET finetune -m base --data text --lora 2 --threads 1 --steps 1 --out tuned");
        must("$LINNET convert tuned peft --base base");
        with_template(s / "base/model.gguf", s / "own.gguf", chatml_template);
        with_template(s / "tuned/adapter.gguf", s / "other.gguf", unknown);
    }
    Outcome must(const std::string& line) const {
        Outcome done = (*this)(line);
        REQUIRE_MESSAGE(done.exit == 0, done.err);
        return done;
    }
    Outcome chat(const std::string& options) const {
        return (*this)("printf one | $LINNET chat --temp 0 -n 4 " + options);
    }
    std::string template_of(const std::string& name) const {
        return std::string(Gguf(s / name).string(chat_template_key).value_or("none"));
    }
    const std::string unknown = "{{ 'Human says: ' }}";
    const std::string taken =
        "other.gguf: tokenizer.chat_template: no template that linnet knows; that of own.gguf is taken\n";
};

}  // namespace

TEST_CASE("where linnet does not know an adapter's chat template the model's serves, and a line says so") {
    const Adapted place;
    const Outcome answer = place.chat("-m own.gguf --lora other.gguf");
    REQUIRE_MESSAGE(answer.exit == 0, answer.err);
    CHECK_MESSAGE(has(answer.err, place.taken), answer.err);
    CHECK(answer.out == place.chat("-m own.gguf --lora other.gguf --template chatml").out);
    const Outcome refused = place.chat("--quiet -m base --lora other.gguf");
    CHECK(refused.exit == 3);
    CHECK(is_one_error_line(refused.err));
    CHECK_MESSAGE(has(refused.err, "other.gguf: tokenizer.chat_template: expected a template that linnet"),
                  refused.err);
    // A merged model is talked with as the two that it is made of.
    CHECK(has(place.must("$LINNET merge -m own.gguf --lora other.gguf -o one.gguf").err, place.taken));
    CHECK(place.template_of("one.gguf") == chatml_template);
    place.must("$LINNET merge -m base --lora other.gguf -o two.gguf");
    CHECK(place.template_of("two.gguf") == place.unknown);
    place.must("$LINNET merge -m own.gguf --lora tuned -o three.gguf");
    CHECK(place.template_of("three.gguf") == chatml_template);
}

TEST_CASE("an unknown chat template of a PEFT folder is named by the file that it was read from") {
    const Adapted place;
    const auto check = [&](const std::string& where) {
        CAPTURE(where);
        const Outcome refused = place.chat("--quiet -m base --lora peft");
        CHECK(refused.exit == 3);
        CHECK_MESSAGE(has(refused.err, "error: " + where + ": expected a template that linnet knows"),
                      refused.err);
        const Outcome answer = place.chat("-m own.gguf --lora peft");
        CHECK(answer.exit == 0);
        CHECK_MESSAGE(has(answer.err, where + ": no template that linnet knows; that of own.gguf is taken\n"),
                      answer.err);
    };
    write_text(place.s / "peft/tokenizer_config.json", "{\"chat_template\": \"" + place.unknown + "\"}");
    check("peft/tokenizer_config.json: chat_template");
    write_text(place.s / "peft/chat_template.jinja", place.unknown);
    check("peft/chat_template.jinja");
}

TEST_CASE("a PEFT folder's files for its chat template are read where a template is needed, and only there") {
    const Adapted place;
    write_text(place.s / "peft/tokenizer_config.json", "{");
    const std::string with_it = "-m own.gguf --lora peft";
    place.must("$LINNET generate -p one -n 2 " + with_it);
    place.must("$LINNET eval --file text --windows 1 " + with_it);
    CHECK(place.chat("--template chatml " + with_it).exit == 0);
    for (const Outcome& refused :
         {place.chat("--quiet " + with_it), place("$LINNET merge -o x.gguf " + with_it),
          place("$LINNET convert peft x.gguf --base own.gguf")}) {
        CHECK(refused.exit == 3);
        CHECK_MESSAGE(is_one_error_line(refused.err), refused.err);
        CHECK_MESSAGE(has(refused.err, "peft/tokenizer_config.json"), refused.err);
    }
    // A template with a file of its own stands before what that file could say.
    write_text(place.s / "peft/chat_template.jinja", jinja_of(open_chat_template("zephyr", "test"), false));
    const Outcome answer = place.chat(with_it);
    REQUIRE_MESSAGE(answer.exit == 0, answer.err);
    CHECK(answer.out == place.chat("--template zephyr " + with_it).out);
}
