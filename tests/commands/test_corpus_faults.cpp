// What a corpus survives: being replaced, killed, planted links, an idle stdin.
#include <doctest/doctest.h>

#include <filesystem>

#include "commands/tiny.h"
#include "support.h"

using namespace linnet::test;

namespace {

namespace fs = std::filesystem;

/// A folder with `text`, another text `more`, t.json, and the corpora `old` and `new` of the two.
struct Place : Workplace {
    Place() : Workplace("CORPUS=\"$LINNET corpus -t t.json --shard-tokens 500\"") {
        write_text(s / "more", counting_text() + counting_text() + "eleven\n");
        REQUIRE((*this)("$LINNET tokenizer train --vocab-size 270 -o t.json text 2>/dev/null; "
                        "$CORPUS -o old text 2>/dev/null >&2; $CORPUS -o new more 2>/dev/null >&2; "
                        "cp -r old out; echo mine > out/notes; mkdir out/sub; echo mine > out/sub/x")
                    .exit == 0);
    }
    /// `out` is the corpus `name`, with the user's files, and nothing stands beside it.
    void check_is(const std::string& name) const {
        const Outcome same =
            (*this)("diff -r -x notes -x sub " + name + " out && cat out/notes out/sub/x; ls -A");
        CHECK_MESSAGE(same.out == "mine\nmine\nmore\nnew\nold\nout\nt.json\ntext\n", same.out);
    }
};

/// Starts $CORPUS --overwrite on a pipe that holds `more` and no end, and waits until it has begun to write.
const std::string half_way =
    "mkfifo pipe; $CORPUS --overwrite -o out - < pipe 2> err >&2 & p=$!; exec 9> pipe; rm pipe; cat more "
    ">&9\n"
    "until [ -e .out.linnet-new/progress.json ]; do sleep 0.01; done\n";

}  // namespace

TEST_CASE("corpus --overwrite: the old corpus stands until the new one is whole") {
    Place place;
    const Outcome refused = place("$CORPUS --overwrite -o out absent");
    CHECK(refused.exit == 4);
    place.check_is("old");
    write_text(place.s / "bad", "good\nbad \xFF");
    CHECK(place("$CORPUS --overwrite -o out bad; code=$?; rm bad; exit $code").exit == 3);
    place.check_is("old");
    const Outcome killed =
        place(half_way + "kill -9 $p; wait $p; rm err; diff -r -x notes -x sub -x .linnet.lock old out");
    CHECK_MESSAGE(killed.exit == 0, killed.out);
    CHECK(fs::exists(place.s / ".out.linnet-new"));
    const Outcome told = place("$CORPUS -o out more");
    CHECK(told.exit == 2);
    CHECK(has(told.err, "--resume goes on with it, --overwrite begins again"));
    const Outcome made = place("$CORPUS --overwrite -o out more");
    CHECK_MESSAGE(made.exit == 0, made.err);
    place.check_is("new");
}

TEST_CASE("corpus --overwrite that was killed goes on with --resume, and replaces the old corpus then") {
    Place place;
    CHECK(place(half_way + "kill -9 $p; wait $p 2>/dev/null; rm err; $CORPUS --resume -o out - < more >&2")
              .exit == 0);
    place.check_is("new");
    // Through a link, from inside, and with the folder's name ending in a slash.
    CHECK(place("ln -s out link; $CORPUS --overwrite -o link text && rm link").exit == 0);
    place.check_is("old");
    CHECK(place("cd out; $LINNET corpus -t ../t.json --shard-tokens 500 --overwrite -o . ../more").exit == 0);
    place.check_is("new");
    CHECK(place("$CORPUS --overwrite -o out/ text").exit == 0);
    place.check_is("old");
}

TEST_CASE("what a kill between the steps of an exchange leaves is mended by the next start") {
    Place place;
    // After the exchange, before the old corpus's folder was cleared: the user's files are still in it.
    place("mv out .out.linnet-new; cp -r new out");
    CHECK(place("$CORPUS --resume -o out more").exit == 0);
    place.check_is("new");
    // The new one whole, but not yet exchanged.
    place("cp -r old .out.linnet-new; $LINNET corpus -t t.json -o p - < /dev/null 2>/dev/null >&2; rm -rf p");
    CHECK(place("$CORPUS --overwrite -o out text").exit == 0);
    place.check_is("old");
    // Between the two renames of a file system that cannot exchange.
    place("mv out .out.linnet-old; cp -r new .out.linnet-new");
    CHECK(place("$CORPUS --overwrite -o out more").exit == 0);
    place.check_is("new");
}

TEST_CASE("a fresh corpus replaces nothing that looks like a corpus's file") {
    Place place;
    for (const char* name : {"train_000000.bin", "val_000001.bin", "train_000000.part", "tokenizer.gguf"}) {
        CAPTURE(std::string(name));
        const Outcome refused =
            place("mkdir d; echo mine > d/" + std::string(name) + "; $CORPUS -o d text; code=$?; cat d/" +
                  name + "; rm -r d; exit $code");
        CHECK(refused.exit == 2);
        CHECK(refused.out == "mine\n");
        CHECK(has(refused.err, "--overwrite"));
    }
    CHECK(place("mkdir d; cp old/tokenizer.gguf d; $CORPUS -o d text && diff -r old d").exit == 0);
}

TEST_CASE("a corpus is not written through links that lie in its folder") {
    Place place;
    const Outcome made = place(
        "for f in index.json progress.json tokenizer.gguf; do echo mine > victim-$f; done; echo mine > "
        "victim\n"
        "mkdir d; ln -s ../victim-index.json d/index.json; ln -s ../victim-progress.json d/progress.json\n"
        "ln -s ../victim-tokenizer.gguf d/tokenizer.gguf; ln -s ../victim d/train_000000.part\n"
        "$CORPUS --overwrite -o d text >/dev/null 2> err; code=$?; cat victim*; find d -type l; cat err >&2; "
        "exit "
        "$code");
    CHECK(made.exit == 0);
    CHECK_MESSAGE(made.out == "mine\nmine\nmine\nmine\n", made.err);
    const Outcome part = place(
        "mkdir e; mkfifo pipe; $CORPUS -o e - < pipe 2> err >&2 & p=$!; exec 9> pipe\n"
        "until [ -e e/progress.json ]; do sleep 0.01; done; ln -s ../victim e/train_000000.part; "
        "cat text >&9; exec 9>&-; wait $p; code=$?; cat err victim; exit $code");
    CHECK(part.exit == 4);
    CHECK_MESSAGE(has(part.out, "a symbolic link"), part.out);
    CHECK(has(part.out, "mine\n"));
}

TEST_CASE("a corpus beside another is not built, and nothing moved, through a link") {
    Place place;
    const Outcome beside = place(
        "mkdir elsewhere; echo mine > elsewhere/notes; cp old/index.json elsewhere; "
        "ln -s elsewhere .out.linnet-new; $CORPUS --overwrite -o out more");
    CHECK(beside.exit == 4);
    CHECK_MESSAGE(is_one_error_line(beside.err), beside.err);
    CHECK(place("ls -A elsewhere").out == "index.json\nnotes\n");
    CHECK(place("rm .out.linnet-new; ln -s elsewhere .d.linnet-old; $CORPUS -o d text; rm .d.linnet-old")
              .exit == 0);
    CHECK(place("ls -A elsewhere").out == "index.json\nnotes\n");
    place("rm -r elsewhere d");
    place.check_is("old");
}

TEST_CASE("Ctrl-C ends the wait for an idle stdin at once") {
    Place place;
    for (const std::string line : {"$CORPUS -o d -", "$LINNET tokenizer train --vocab-size 270 -o d.json -",
                                   "$LINNET tokenizer train --kind char -o d.gguf -"}) {
        CAPTURE(line);
        // 9 keeps the pipe open: its reader waits for ever.
        const Outcome ended =
            place("mkfifo pipe; env --default-signal=INT " + line +
                  " < pipe >/dev/null 2>&1 & p=$!; exec 9> pipe; rm pipe\n"
                  "until [ $(( 0x$(awk '/SigCgt/ {print $2}' /proc/$p/status) & 2 )) = 2 ]; do sleep 0.01; "
                  "done; sleep 0.2; kill -INT $p; "
                  "( sleep 20; kill -9 $p ) 2>/dev/null & w=$!; wait $p; code=$?; kill $w; exit $code");
        CHECK(ended.exit == 130);
    }
}
