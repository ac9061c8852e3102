// linnet chat, from a pipe and on a terminal.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>

#include <stdexcept>

#include "commands/chat/session.h"
#include "commands/pseudo_terminal.h"
#include "commands/tiny.h"

using namespace linnet;
using namespace linnet::test;

namespace {

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
        with_template(s / "plain.gguf", s / "chatml.gguf", chatml_template);
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

/// A short conversation on a terminal, whose home is the scratch folder.
struct Talk : PseudoTerminal {
    explicit Talk(const std::vector<std::string>& more = {})
        : PseudoTerminal(arguments(more), {"XDG_STATE_HOME=", "HOME=" + talkers().s.path, "LANG=C.UTF-8"}) {}
    static std::vector<std::string> arguments(const std::vector<std::string>& more) {
        std::vector<std::string> all = {
            "chat",      "-m", talkers().s / "chatml.gguf", "--ctx", "999", "-n", "3", "--seed", "1",
            "--threads", "1"};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    /// Types at the next prompt, and waits for what is to be said then.
    void at_prompt(const std::string& keys, const std::string& says) {
        CAPTURE(keys);
        REQUIRE_MESSAGE(shows("> "), printed());
        type(keys);
        REQUIRE_MESSAGE(shows(says), printed());
    }
    void end() {
        at_prompt("\x04", "\n");
        CHECK(exit() == 0);
    }
};

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

TEST_CASE("a command without an argument refuses one; what is pasted in several lines is a message") {
    Talk talk;
    for (const char* name : {"/exit", "/quit", "/undo", "/reset", "/retry", "/help"})
        talk.at_prompt(std::string(name) + " now\r",
                       name + std::string(": expected nothing behind it, got 'now'"));
    talk.at_prompt("/byee\r", "(did you mean /bye?)");
    talk.at_prompt("/quitt\r", "(did you mean /quit?)");
    talk.at_prompt("\x1b[200~/exit\nplease\x1b[201~", "please");
    talk.type("\r");
    talk.at_prompt("\x1b[200~/usr/bin/true\nis no command\x1b[201~", "command");
    talk.type("\r");
    talk.at_prompt("\x1b[200~/system Be\nbrief.\x1b[201~", "brief.");
    talk.type("\r");
    REQUIRE_MESSAGE(talk.shows("system text: Be"), talk.printed());
    talk.at_prompt("/save ~/pasted.json\r", "wrote ");
    talk.at_prompt("/undo\r", "taken back: /usr/bin/true");
    talk.at_prompt("/undo\r", "taken back: /exit");
    talk.end();
    const std::string said = talkers().file("pasted.json");
    CHECK_MESSAGE(has(said, R"("Be\nbrief.")"), said);
    CHECK_MESSAGE(has(said, R"("/exit\nplease")"), said);
}

TEST_CASE("/quit and /bye end a conversation as /exit does") {
    for (const char* line : {"/quit\r", "/bye\r"}) {
        Talk talk;
        talk.at_prompt(line, "\n");
        CHECK(talk.exit() == 0);
    }
}

TEST_CASE("/save, /load and /set grammar take names of files in quotes, and ~/ for the home folder") {
    const Workplace& run = talkers();
    write_text(run.s / "one g.gbnf", "root ::= \"x\"");
    Talk talk;
    talk.at_prompt("/save \"" + (run.s / "quoted name.json") + "\"\r", "wrote ");
    talk.at_prompt("/save --overwrite \"~/at home.json\"\r", "wrote ");
    CHECK(run.file("quoted name.json") == "[]\n");
    CHECK(run.file("at home.json") == "[]\n");
    talk.at_prompt("/load \"~/at home.json\"\r", "0 turns");
    talk.at_prompt("/load ~/nothing.json\r", run.s / "nothing.json: No such file");
    talk.at_prompt("/load '~/at home.json'\r", "0 turns");
    talk.at_prompt("/load \"-\"\r", "expected the name of a file, got '-'");
    talk.at_prompt("/set grammar ~/one g.gbnf\r", "grammar \"" + (run.s / "one g.gbnf\"\r\n"));
    talk.at_prompt("/set grammar \"~/one g.gbnf\"\r", "grammar \"" + (run.s / "one g.gbnf\"\r\n"));
    talk.at_prompt("/set grammar \"\"\r", "\r\n");
    talk.at_prompt("/set grammar\r", "grammar \"\"\r\n");
    talk.end();
}

TEST_CASE("/set takes lists of texts, quotes and =, and shows what can be typed back") {
    Talk talk;
    // Sets, and asks: what was typed is seen on the terminal, too.
    auto becomes = [&](const std::string& typed, const std::string& name, const std::string& value) {
        talk.at_prompt("/set " + typed + "\r", "\n");
        talk.at_prompt("/set " + name + "\r", name + "\r\n");
        CAPTURE(typed);
        REQUIRE_MESSAGE(talk.shows(name + " " + value + "\r\n"), talk.printed());
    };
    const std::string bias = R"("\"e\"=-inf")", two = R"(["a b","c"])";
    becomes("stop Exit now", "stop", R"("Exit now")");
    becomes("stop \"\\n\"", "stop", R"("\n")");
    becomes("stop " + two, "stop", two);
    becomes("stop [/INST]", "stop", R"("[/INST]")");
    becomes("stop \"\"", "stop", R"("")");
    becomes("logit-bias \"e\"=-inf", "logit-bias", bias);
    becomes("logit-bias " + bias, "logit-bias", bias);
    becomes("logit_bias \"\"", "logit-bias", R"("")");
    becomes("dry-sequence-breaker none", "dry-sequence-breaker", R"("")");
    becomes("samplers \"top_k;temperature\"", "samplers", R"("top_k;temperature")");
    becomes("top-k = 3", "top-k", "3");
    becomes("top-k=4", "top-k", "4");
    becomes("temp \"0.5\"", "temp", "0.5");
    talk.at_prompt("/set stop [\"a\",\"\"]\r", "stop: expected a value, got an empty text");
    talk.at_prompt("/set logit-bias 5\r", "logit-bias: expected a token, '=' and a number");
    talk.at_prompt("/set stp x\r", "stp: expected a known key");
    talk.at_prompt("/set max_tokens 3\r", "max_tokens: expected a known key");
    REQUIRE_MESSAGE(talk.shows("tokens?)"), talk.printed());
    talk.at_prompt("/set logprobs 3\r", "logprobs: expected a known key");
    talk.at_prompt("/set\r", "logit-bias \"\"  (");
    REQUIRE_MESSAGE(talk.shows("stop \"\"  ("), talk.printed());
    talk.end();
    CHECK_MESSAGE(!has(talk.printed(), "stdin"), talk.printed());
}

TEST_CASE("a changed width draws prompt and line over the old ones") {
    Talk talk;
    talk.at_prompt("hello wide world", "world");
    talk.resize(10);  // "> hello wi", "de world"
    REQUIRE_MESSAGE(talk.shows("\x1b[1A\r\x1b[J"), talk.printed());
    REQUIRE_MESSAGE(talk.shows("> hello wi"), talk.printed());
    REQUIRE_MESSAGE(talk.shows("de world"), talk.printed());
    talk.resize(5);  // "> hel", "lo wi", "de wo", "rld"
    REQUIRE_MESSAGE(talk.shows("\x1b[3A\r\x1b[J"), talk.printed());
    REQUIRE_MESSAGE(talk.shows("rld"), talk.printed());
    talk.resize(80);
    REQUIRE_MESSAGE(talk.shows("\r\x1b[J"), talk.printed());
    REQUIRE_MESSAGE(talk.shows("> hello wide world"), talk.printed());
    talk.type("\x03");
    // A pasted line of its own begins a row.
    talk.at_prompt("\x1b[200~one\ntwo\x1b[201~", "two");
    talk.resize(70);
    REQUIRE_MESSAGE(talk.shows("\x1b[1A\r\x1b[J"), talk.printed());
    REQUIRE_MESSAGE(talk.shows("two"), talk.printed());
    talk.type("\x03");
    talk.end();
}

TEST_CASE("CR LF in what is pasted is one line end") {
    Talk talk;
    talk.at_prompt("\x1b[200~one\r\ntwo\rthree\nfour\r\n\x1b[201~", "four");
    talk.type("\r");
    talk.at_prompt("/save ~/crlf.json\r", "wrote ");
    talk.end();
    const std::string said = talkers().file("crlf.json");
    CHECK_MESSAGE(has(said, R"("one\ntwo\nthree\nfour")"), said);
}

TEST_CASE("chat --load tells on a terminal what it has loaded") {
    const Workplace& run = talkers();
    write_text(run.s / "two.json",
               R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                   {"role": "user", "content": "c"}])");
    Talk talk({"--load", run.s / "two.json"});
    REQUIRE_MESSAGE(talk.shows("two.json: 2 turns; /retry"), talk.printed());
    talk.end();
    CHECK_FALSE(
        has(run("printf hi | $LINNET chat -m plain.gguf --ctx 999 -n 3 --load two.json").err, "turns"));
}

TEST_CASE("chat names the text that its vocabulary cannot spell") {
    Workplace run("MODEL='" + tiny_model() + "'");
    write_text(run.s / "c.json",
               R"([{"role": "user", "content": "one"}, {"role": "assistant", "content": "#"}])");
    const std::string chat = " | $LINNET chat -m \"$MODEL\" --quiet -n 2 ";
    for (const auto& [line, named] :
         {std::pair<std::string, std::string>{"printf 'one #'" + chat, "stdin: byte 4: "},
          {"printf '  one #'" + chat + "--template llama2", "stdin: byte 6: "},  // which trims
          {"printf one" + chat + "--system 'a#'", "--system: byte "},
          {"printf one" + chat + "--load c.json", "c.json: message 2: byte 0: "}}) {
        const Outcome refused = run(line);
        CHECK(refused.exit == 3);
        CHECK_MESSAGE(is_one_error_line(refused.err), refused.err);
        CHECK_MESSAGE(refused.err.starts_with("linnet: error: " + named), refused.err);
    }
}

TEST_CASE("what is typed or loaded and cannot be spelled is refused by its name, and changes nothing") {
    const Workplace run;
    write_text(run.s / "bad.json",
               R"([{"role": "user", "content": "one"}, {"role": "assistant", "content": "#"}])");
    PseudoTerminal terminal({"chat", "-m", tiny_model(), "-n", "2", "--seed", "1", "--threads", "1"},
                            {"XDG_STATE_HOME=", "HOME=" + run.s.path, "LANG=C.UTF-8"});
    for (const auto& [typed, says] :
         {std::pair<const char*, const char*>{"one #\r", "message: byte 4: expected a character of"},
          {"/system o#\r", "/system: byte 1: expected a character of"},
          {"/load ~/bad.json\r", "bad.json: message 2: byte 0: expected a character of"},
          {"/system\r", "no system text"},
          {"/undo\r", "expected a message to take back, got none"},
          {"two\r", "two\r\n"},
          {"/undo\r", "taken back: two"}}) {
        CAPTURE(typed);
        REQUIRE_MESSAGE(terminal.shows("> "), terminal.printed());
        terminal.type(typed);
        REQUIRE_MESSAGE(terminal.shows(says), terminal.printed());
    }
    REQUIRE(terminal.shows("> "));
    terminal.type("\x04");
    CHECK(terminal.exit() == 0);
}
