// linnet chat, from a pipe and on a terminal.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>

#include <stdexcept>

#include "commands/chat/session.h"
#include "commands/pseudo_terminal.h"
#include "commands/tiny.h"
#include "formats/gguf.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// The file `from` with a chat template in it.
void with_template(const std::string& from, const std::string& to, const std::string& source) {
    const Gguf file(from);
    GgufWriter writer;
    for (std::size_t i = 0; i < file.values().size(); i++)
        writer.add_stored(std::string(file.values()[i].first), file.stored_value(i));
    writer.add("tokenizer.chat_template", source);
    for (const GgufTensor& tensor : file.tensors())
        writer.add_tensor(std::string(tensor.name), tensor.type, tensor.shape,
                          [bytes = tensor.bytes](const auto& sink) { sink(bytes.data(), bytes.size()); });
    writer.write(to);
}

const std::string chatml = "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>'}}";

/// A model of bytes with room for a text that no test waits for: `plain.gguf`, `chatml.gguf`, `other.gguf`.
struct Talkers : Workplace {
    Talkers() {
        write_text(s / "config.json", tiny_config());
        const Outcome made = (*this)(
            "$LINNET train config.json --data text --out out --threads 1 --set tokenizer.kind=byte "
            "--set model.context=1000000 --set model.position.kind=rope --set train.sequence=32 --set "
            "train.steps=5 "
            "--set train.eval_every=5");
        if (made.exit != 0) throw std::runtime_error(made.err);
        (*this)("mv out/model.gguf plain.gguf");
        with_template(s / "plain.gguf", s / "chatml.gguf", chatml);
        with_template(s / "plain.gguf", s / "other.gguf", "{{ 'Human says: ' }}");
    }
};
const Talkers& talkers() {
    static const Talkers one;
    return one;
}

/// What chat prints where this is its prompt, by generate.
std::string continued(const Workplace& run, const std::string& prompt) {
    const Outcome same = run("printf '" + prompt +
                             "' | $LINNET generate -m plain.gguf --keep-newline --temp 0 -n 9 --ctx 999");
    CHECK(same.exit == 0);
    std::string text = same.out;
    text.erase(0, text.find_first_not_of(" \n"));
    return text.empty() ? "\n" : text;
}

}  // namespace

TEST_CASE("chat answers one message from a pipe, in the form that the model's file says") {
    const Workplace& run = talkers();
    const Outcome answer =
        run("printf 'one two\\n' | $LINNET chat -m chatml.gguf --system 'Be x.' --temp 0 -n 9 --ctx 999");
    CHECK(answer.exit == 0);
    CHECK(answer.err.empty());
    const std::string prompt =
        "<|im_start|>system\\nBe x.<|im_end|>\\n<|im_start|>user\\none "
        "two<|im_end|>\\n<|im_start|>assistant\\n";
    CHECK(answer.out == continued(run, prompt));
    const std::string sampled =
        "printf hi | $LINNET chat -m chatml.gguf --ctx 999 -n 30 --temp 1.5 --top-k 0 --seed ";
    CHECK(run(sampled + "7").out == run(sampled + "7").out);
    CHECK(run(sampled + "7").out != run(sampled + "8").out);
}

TEST_CASE("chat goes on with a conversation of a file, and refuses files that hold none") {
    const Workplace& run = talkers();
    write_text(run.s / "c.json",
               R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])");
    const Outcome answer =
        run("printf c | $LINNET chat -m plain.gguf --template chatml --load c.json --temp 0 -n 9 --ctx 999");
    CHECK(answer.exit == 0);
    const std::string prompt =
        "<|im_start|>user\\na<|im_end|>\\n<|im_start|>assistant\\nb<|im_end|>\\n<|im_start|>user\\nc<|im_end|"
        ">\\n"
        "<|im_start|>assistant\\n";
    CHECK(answer.out == continued(run, prompt));
    write_text(run.s / "bad.json", R"([{"role": "user"}])");
    write_text(run.s / "bad-form.json", R"({"user": {"before": 3}, "assistant": {}})");
    for (const char* arguments :
         {"--load bad.json", "--load plain.gguf", "-m other.gguf", "--template chatlm",
          "--template bad-form.json", "--template plain.gguf", "--ctx 10 --template chatml"}) {
        CAPTURE(arguments);
        const std::string model = std::string(arguments).starts_with("-m") ? "" : "-m plain.gguf ";
        const Outcome refused = run("printf hi | $LINNET chat --quiet " + model + arguments);
        CHECK(refused.exit == 3);
        CHECK(refused.out.empty());
        CHECK_MESSAGE(is_one_error_line(refused.err), refused.err);
    }
    CHECK(run("printf hi | $LINNET chat --quiet --load none.json").exit == 4);
    CHECK(run("$LINNET chat --quiet </dev/null").exit == 3);
    CHECK(has(run("printf hi | $LINNET chat -m other.gguf").err, "--template NAME or FILE"));
    CHECK(has(run("printf hi | $LINNET chat -m plain.gguf --template chatlm").err, "--template: expected"));
}

TEST_CASE("chat says of a model without a template that it continues text and does not answer") {
    const Workplace& run = talkers();
    const Outcome answer = run("printf 'one two' | $LINNET chat -m plain.gguf --temp 0 --ctx 999");
    CHECK(answer.exit == 0);
    CHECK(has(answer.err, "plain.gguf: this model continues text and does not answer"));
    CHECK(answer.out.size() ==
          run("printf 'one two' | $LINNET generate -m plain.gguf --temp 0 -n 128 --ctx 999").out.size());
}

TEST_CASE("on a terminal Ctrl-C ends an answer and not the conversation, and pasted lines are one message") {
    const Workplace& run = talkers();
    PseudoTerminal terminal(
        {"chat", "-m", run.s / "chatml.gguf", "--seed", "1", "--ignore-end", "--threads", "1"},
        {"XDG_STATE_HOME=" + run.s.path, "LANG=C.UTF-8"});
    // Types at the next prompt, and waits for what is to be said then.
    auto at_prompt = [&](const std::string& keys, const std::string& says) {
        CAPTURE(keys);
        REQUIRE_MESSAGE(terminal.shows("> "), terminal.printed());
        terminal.type(keys);
        REQUIRE_MESSAGE(terminal.shows(says), terminal.printed());
    };
    REQUIRE(terminal.shows("chatml template, context of 1 000 000 tokens"));
    at_prompt("hello\r", "\n");
    REQUIRE(terminal.shows("e"));  // of an answer that would go on for many thousand tokens
    terminal.type("\x03");
    REQUIRE_MESSAGE(terminal.shows("[interrupted]"), terminal.printed());
    at_prompt("typed and dropped\x03", "(Ctrl-D or /exit ends)");
    at_prompt("/set tokens 5\r", "tokens 5\r\n");
    at_prompt("\x1b[200~first line\nsecond ünd\rthird\n\x1b[201~", "third");
    terminal.type("\r");
    at_prompt("/nonsense\r", "expected a command, as /help lists them, got '/nonsense'");
    at_prompt("/set temp hot\r", "/set: temp: expected");
    at_prompt("/load " + (run.s / "text") + "\r", "expected JSON");
    at_prompt("/save " + (run.s / "said.json") + "\r", "wrote ");
    at_prompt("/save " + (run.s / "said.json") + "\r", "overwrite");
    at_prompt("/undo\r", "taken back: first line");
    at_prompt("/retry\r", "\n");
    at_prompt("/reset\r", "starts over");
    at_prompt("/undo\r", "expected a message to take back, got none");
    at_prompt("/load " + (run.s / "said.json") + "\r", "2 turns");
    at_prompt("\x04", "\n");
    CHECK(terminal.exit() == 0);
    const std::string said = run.file("said.json");
    CHECK(has(said, "\"hello\""));
    CHECK(!has(said, "dropped"));
    CHECK_MESSAGE(has(said, "\"first line\\nsecond ünd\\nthird\""), said);
    const std::string history = run.s / "linnet/chat_history";
    CHECK(has(read_text(history), "\"first line\\nsecond ünd\\nthird\"\n"));
    struct stat state = {};
    REQUIRE(::stat(history.c_str(), &state) == 0);
    CHECK((state.st_mode & 0777) == 0600);
    // What was typed is there the next time.
    PseudoTerminal again({"chat", "-m", run.s / "chatml.gguf", "--ctx", "999"},
                         {"XDG_STATE_HOME=" + run.s.path});
    REQUIRE(again.shows("> "));
    again.type("\x1b[A");
    REQUIRE(again.shows("said.json"));
    again.type("\x03");
    REQUIRE(again.shows("> "));
    again.type("/exit\r");
    CHECK(again.exit() == 0);
}

TEST_CASE("chat without a history that can be kept says nothing of it; SIGTERM ends it") {
    const Workplace& run = talkers();
    PseudoTerminal terminal({"chat", "-m", run.s / "chatml.gguf", "--ctx", "999", "-n", "3"},
                            {"XDG_STATE_HOME=/dev/null/nowhere"});
    REQUIRE(terminal.shows("Ctrl-D ends"));
    REQUIRE(terminal.shows("> "));
    terminal.type("hi\r");
    REQUIRE(terminal.shows("> "));
    CHECK(!has(terminal.printed(), "nowhere"));
    terminal.signal(SIGTERM);
    CHECK(terminal.exit() == 143);
}

TEST_CASE("on a dumb terminal a conversation has no escapes") {
    const Workplace& run = talkers();
    PseudoTerminal terminal({"chat", "-m", run.s / "chatml.gguf", "--ctx", "999", "-n", "3"},
                            {"XDG_STATE_HOME=", "TERM=dumb"});
    REQUIRE(terminal.shows("> "));
    terminal.type("/set tokens 4\n");
    REQUIRE(terminal.shows("tokens 4"));
    REQUIRE(terminal.shows("> "));
    terminal.type("hi\n");
    REQUIRE(terminal.shows("hi"));
    REQUIRE(terminal.shows("> "));
    terminal.type("\x04");
    CHECK(terminal.exit() == 0);
    CHECK_MESSAGE(!has(terminal.printed(), "\x1b"), terminal.printed());
}

TEST_CASE("/save says the size, makes folders, and writes nothing to stdout") {
    const Workplace& run = talkers();
    PseudoTerminal terminal({"chat", "-m", run.s / "chatml.gguf", "--ctx", "999", "-n", "3"},
                            {"XDG_STATE_HOME="});
    REQUIRE(terminal.shows("> "));
    terminal.type("/save " + (run.s / "new/folder/talk.json") + "\r");
    CHECK_MESSAGE(terminal.shows("talk.json, 3 B"), terminal.printed());
    REQUIRE(terminal.shows("> "));
    terminal.type("/save -\r");
    CHECK_MESSAGE(terminal.shows("got '-'"), terminal.printed());
    REQUIRE(terminal.shows("> "));
    for (const char* line : {"/load -\r", "/set grammar -\r"}) {
        terminal.type(line);
        CHECK_MESSAGE(terminal.shows("got '-'"), terminal.printed());
        REQUIRE(terminal.shows("> "));
    }
    terminal.type("\x04");
    CHECK(terminal.exit() == 0);
    CHECK(run.file("new/folder/talk.json") == "[]\n");
}

TEST_CASE("/help of a conversation names every command") {
    const Workplace& run = talkers();
    PseudoTerminal terminal({"chat", "-m", run.s / "chatml.gguf", "--ctx", "999"}, {"XDG_STATE_HOME="});
    REQUIRE(terminal.shows("> "));
    terminal.type("/help\r");
    REQUIRE(terminal.shows("/help"));
    for (const std::string& name : chat_command_names()) CHECK(terminal.shows(name));
    REQUIRE(terminal.shows("> "));
    terminal.type("/set\r");
    for (const char* name : {"tokens", "temp", "top-k", "seed"}) CHECK(terminal.shows(name));
    REQUIRE(terminal.shows("> "));
    terminal.type("\x04");
    CHECK(terminal.exit() == 0);
}
