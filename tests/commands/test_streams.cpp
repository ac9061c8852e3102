// Where results go, and what happens when that place is closed, full, or loses interest.
#include <doctest/doctest.h>

#include "commands/tiny.h"
#include "support.h"

using namespace linnet::test;

namespace {

/// `MODEL` in the line is the tiny model.
Outcome shell(const std::string& line) {
    return run_shell("MODEL='" + tiny_model() + "'\n" + line);
}

}  // namespace

TEST_CASE("a closed or full stdout is an error, not silence") {
    for (const char* command :
         {"--help", "", "--version", "generate -m $MODEL -p one -n 5", "inspect $MODEL",
          "inspect logits -m $MODEL -p one", "bench -m $MODEL -p 4 -n 4 -r 1", "generate --help"}) {
        CAPTURE(command);
        for (const char* place : {">&-", ">/dev/full"}) {
            Outcome outcome = shell(std::string("$LINNET ") + command + " " + place);
            CHECK(outcome.exit == 4);
            CHECK_MESSAGE(is_one_error_line(outcome.err), outcome.err);
            CHECK(has(outcome.err, "stdout"));
        }
    }
}

TEST_CASE("a reader that has seen enough (head) ends the program quietly") {
    for (const char* command :
         {"inspect logits -m $MODEL -p one", "generate -m $MODEL -p one -n 20000 --ctx-shift", "--help"}) {
        CAPTURE(command);
        Outcome outcome =
            shell(std::string("$LINNET ") + command + " | head -c 1 >/dev/null; exit ${PIPESTATUS[0]}");
        CHECK(outcome.exit == 0);
        CHECK(outcome.err.empty());
    }
}

TEST_CASE(
    "a closed stdin or stderr is no trouble, and nothing is written into the model through its number") {
    Outcome sum = shell("sha256sum < $MODEL");
    CHECK(shell("$LINNET generate -m $MODEL -p one -n 5 2>&-").exit == 0);
    CHECK(shell("$LINNET generate -m $MODEL -p one -n 5 <&-").exit == 0);
    CHECK(shell("$LINNET generate -m $MODEL -p one -n 5 >&-").exit == 4);
    CHECK(shell("sha256sum < $MODEL").out == sum.out);
}

TEST_CASE("stdout carries the text alone; notes go to stderr, and --quiet silences them") {
    Outcome loud = shell("$LINNET generate -m $MODEL -p one -n 500 --temp 0");
    CHECK(loud.exit == 0);
    CHECK(loud.out.ends_with("\n"));
    CHECK(has(loud.err, "the context of 32 tokens is full"));
    Outcome quiet = shell("$LINNET --quiet generate -m $MODEL -p one -n 500 --temp 0");
    CHECK(quiet.err.empty());
    CHECK(quiet.out == loud.out);
    CHECK(loud.out.size() < 60);
}

TEST_CASE("Ctrl-C ends generation with the text so far and exit code 130; SIGTERM with 143") {
    for (const auto& [signal, code] : {std::pair{"INT", 130}, std::pair{"TERM", 143}}) {
        // A background job of a script would ignore SIGINT (POSIX): env gives it its meaning back.
        Outcome outcome = shell(
            std::string("env --default-signal=INT $LINNET generate -m $MODEL -p one -n -1 --ctx-shift "
                        "--ignore-end > out.$$ & pid=$!\n"
                        "while ! [ -s out.$$ ]; do sleep 0.05; done\nkill -") +
            signal + " $pid; wait $pid; code=$?; tail -c 1 out.$$ | od -c | head -1; rm out.$$; exit $code");
        CHECK(outcome.exit == code);
        CHECK(has(outcome.out, "\\n"));
    }
}

TEST_CASE("what is written leaves as it comes, also into a file or a pipe") {
    Scratch scratch;
    run_shell(killed_at("\"$LINNET\" generate -m " + tiny_model() +
                            " -p one -n 100000000 --ctx-shift --seed 1 >" + (scratch / "out"),
                        " ", scratch / "out"));
    CHECK(read_text(scratch / "out").size() < 4096);
}

TEST_CASE("Ctrl-C ends quantize with exit code 130, the model written") {
    Scratch scratch;
    std::string text;
    for (int i = 0; i < 300; i++) text += counting_text();  // 3 MB: its comparison takes a while
    write_text(scratch / "text", text);
    const Outcome outcome =
        shell("cd " + scratch.path +
              "; env --default-signal=INT $LINNET quantize $MODEL q.gguf --type q8_0 --check text & pid=$!\n"
              "while ! [ -e q.gguf ] && kill -0 $pid; do sleep 0.01; done\nkill -INT $pid; wait $pid");
    CHECK_MESSAGE(outcome.exit == 130, outcome.err);
    CHECK(run_linnet({"inspect", scratch / "q.gguf"}).exit == 0);
}
