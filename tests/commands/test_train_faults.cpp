// What a training run survives: signals, limits, damage, a reader that leaves, what lies in its folder.
#include <doctest/doctest.h>

#include <filesystem>

#include "commands/tiny.h"
#include "support.h"

using namespace linnet::test;

namespace {

namespace fs = std::filesystem;

/// A folder with `text` and `config`; $TRAIN lacks --data and what follows.
struct Place : Workplace {
    Place() : Workplace("TRAIN=\"$LINNET train config --threads 1\"") {
        write_text(s / "config", tiny_config());
    }
};

/// Steps enough to be caught in the middle of.
const std::string endless =
    " --set train.steps=1000000 --set train.eval_every=100000 --set train.checkpoint_every=20 ";
/// Waits until the run in `out` has a checkpoint.
const std::string until_saved =
    "until ls out/checkpoints 2>/dev/null | grep -q '^step-'; do sleep 0.01; done\n";

}  // namespace

TEST_CASE("SIGHUP ends a run as SIGTERM does: saved, exit code 129") {
    Place place;
    // nohup, where it runs the tests, has the signal ignored, and linnet leaves it so.
    const Outcome ended = place("env --default-signal=HUP $TRAIN --data text --out out" + endless +
                                "2>/dev/null & p=$!\n" + until_saved + "kill -HUP $p; wait $p");
    CHECK(ended.exit == 129);
    CHECK(fs::exists(place.s / "out/model.gguf"));
    // With the same end: the run may stand beyond the config's own by now.
    CHECK(place("$TRAIN --data text --out out --resume --time 0.5s" + endless).exit == 0);
}

TEST_CASE("a signal that comes while a run is prepared leaves no lock, and no folder that was not there") {
    Place place;
    fs::create_directory(place.s / "there");
    for (const char* out : {"deep/below/out", "there"}) {
        CAPTURE(out);
        // It waits for a text that never ends.
        const std::string lock = std::string(out) + "/.linnet.lock";
        const Outcome ended =
            place(std::string("rm -f never; mkfifo never; exec 3<>never\n$TRAIN --data - --out ") + out +
                  " <&3 & p=$!\nuntil [ -s " + lock +
                  " ]; do sleep 0.01; done\nsleep 0.2; kill -TERM $p; "
                  "wait $p");
        CHECK(ended.exit == 143);
        CHECK_FALSE(fs::exists(place.s / lock));
    }
    CHECK_FALSE(fs::exists(place.s / "deep"));
    CHECK(fs::is_empty(place.s / "there"));
    CHECK(place("$TRAIN --data text --out there --steps 1").exit == 0);
}

TEST_CASE("a run that is ended before its first step leaves the one that it was to replace") {
    Place place;
    REQUIRE(place("$TRAIN --data text --out out --steps 20 2>/dev/null").exit == 0);
    const std::string model = place.file("out/model.gguf");
    // Its first record waits for room in a pipe.
    const Outcome ended = place(
        "mkfifo full; exec 3<>full; head -c 65536 /dev/zero >&3\n"
        "$TRAIN --data text --out out --overwrite --json >&3 & p=$!\n"
        "until [ -e out/.replaced/complete ]; do sleep 0.01; done\n"
        "kill -TERM $p; cat <&3 >/dev/null & c=$!\nwait $p; e=$?; kill $c; exit $e");
    CHECK(ended.exit == 143);
    CHECK_MESSAGE(has(ended.err, "no step was done: the run that out held stays"), ended.err);
    CHECK(place.file("out/model.gguf") == model);
    CHECK(place("$TRAIN --data text --out out --resume --steps 25").exit == 0);
}

TEST_CASE("a limit on the size of files (SIGXFSZ) is an I/O error that leaves the run resumable") {
    Place place;
    REQUIRE(place("$TRAIN --data text --out out --steps 20 2>/dev/null").exit == 0);
    const Outcome limited = place("ulimit -f 16; $TRAIN --data text --out out --resume --steps 60");
    CHECK(limited.exit == 4);
    CHECK_MESSAGE(has(limited.err, "File too large"), limited.err);
    CHECK(place("$TRAIN --data text --out out --resume --steps 60").exit == 0);
}

TEST_CASE("train --json goes on when its reader leaves") {
    Place place;
    const Outcome left = place("$TRAIN --data text --out out --json | head -1; exit ${PIPESTATUS[0]}");
    CHECK(left.exit == 0);
    CHECK(has(left.err, "stdout is closed"));
    CHECK(fs::exists(place.s / "out/model.gguf"));
    CHECK(has(place.file("out/log.jsonl"), "\"end\""));
    const Outcome full = place("$TRAIN --data text --out full --json > /dev/full");
    CHECK(has(full.err, "No space left"));
    CHECK(place.file("full/model.gguf") == place.file("out/model.gguf"));
}

TEST_CASE("a damaged newest checkpoint is said, and the one before it taken") {
    Place place;
    REQUIRE(place("$TRAIN --data text --out whole 2>/dev/null; cp -r whole out").exit == 0);
    for (const char* damage : {"printf x >> $new/optimizer.bin", "rm $new/manifest.json",
                               ": > $new/model.gguf", "echo '{\"step\": 1e300}' > $new/manifest.json",
                               "sed -i 's/\"model.gguf\": \"[0-9a-f]*\",\\?//' $new/manifest.json"}) {
        CAPTURE(std::string(damage));
        const Outcome resumed = place("rm -rf out; cp -r whole out; new=out/checkpoints/step-00000060\n" +
                                      std::string(damage) + "\n$TRAIN --data text --out out --resume");
        CHECK(resumed.exit == 0);
        CHECK_MESSAGE(has(resumed.err, "step-00000060"), resumed.err);
        CHECK_MESSAGE(has(resumed.err, "going on from out/checkpoints/step-00000040"), resumed.err);
        CHECK(place.file("out/model.gguf") == place.file("whole/model.gguf"));
    }
    const Outcome none = place(
        "for c in out/checkpoints/*; do : > $c/manifest.json; done; "
        "$TRAIN --data text --out out --resume");
    CHECK(none.exit == 3);
    CHECK_MESSAGE(is_one_error_line(none.err), none.err);
}

TEST_CASE("a text whose name is no UTF-8 is trained on, and named again to go on") {
    Place place;
    const std::string name = "$(printf 'text\\377')";
    const Outcome first = place("mv text " + name + "; $TRAIN --data " + name + " --out out --steps 20");
    CHECK_MESSAGE(first.exit == 0, first.err);
    CHECK(place("$TRAIN --out out --resume --steps 40").exit == 4);
    CHECK(place("$TRAIN --data " + name + " --out out --resume --steps 40").exit == 0);
    const Outcome tuned = place(
        "cp text* words; d=$(printf 'd\\377'); mkdir $d; cp out/model.gguf $d/m.gguf; cd $d; "
        "$LINNET finetune -m m.gguf --data ../words --steps 2 --out tuned");
    CHECK_MESSAGE(tuned.exit == 0, tuned.err);
}

TEST_CASE("only names that linnet makes are checkpoints: others are neither taken nor removed") {
    Place place;
    REQUIRE(
        place("$TRAIN --data text --out out --steps 20 2>/dev/null; cd out/checkpoints; "
              "for n in step-00000001.bak step-keep step-000000009 step-1; do cp -r step-00000020 $n; done; "
              "echo > step-99999999")
            .exit == 0);
    const Outcome resumed = place("$TRAIN --data text --out out --resume --steps 60");
    CHECK(resumed.exit == 0);
    CHECK(has(resumed.err, "resuming at step 20"));
    CHECK(place("LC_ALL=C ls out/checkpoints").out ==
          "step-000000009\nstep-00000001.bak\nstep-00000040\nstep-00000060\nstep-1\nstep-99999999\nstep-"
          "keep\n");
}

TEST_CASE("saving a step that is there already leaves one checkpoint of it") {
    Place place;
    REQUIRE(place("$TRAIN --data text --out out 2>/dev/null").exit == 0);
    const std::string before = place("cd out/checkpoints; sha256sum */optimizer.bin").out;
    CHECK(place("$TRAIN --data text --out out --resume").exit == 0);
    CHECK(place("cd out/checkpoints; sha256sum */optimizer.bin").out == before);
    CHECK(place("ls -A out/checkpoints").out == "step-00000040\nstep-00000060\n");
}

TEST_CASE("what breaks off an exchange of two checkpoints is mended by the next start") {
    Place place;
    REQUIRE(place("$TRAIN --data text --out out 2>/dev/null; cd out/checkpoints; rm -r step-00000040; "
                  "cp -r step-00000060 .partial-step-00000060; mv step-00000060 .replaced-step-00000060")
                .exit == 0);
    CHECK(place("$TRAIN --data text --out out --resume").exit == 0);
    CHECK(place("ls -A out/checkpoints").out == "step-00000060\n");
}

TEST_CASE("a shard that becomes shorter during training is one line and exit code 4; the run goes on later") {
    Place place;
    REQUIRE(
        place(
            "$LINNET tokenizer train --vocab-size 270 -o t.json text 2>/dev/null; for i in $(seq 40); do cat "
            "text; done > long; $LINNET corpus -t t.json -o corpus --validation 0 long 2>/dev/null; "
            "cp corpus/train_000000.bin whole")
            .exit == 0);
    const Outcome cut =
        place("$TRAIN --data corpus --out out" + endless + "2> err & p=$!\n" + until_saved +
              ": > corpus/train_000000.bin; wait $p; code=$?; grep '^linnet: error' err; exit $code");
    CHECK(cut.exit == 4);
    CHECK_MESSAGE(has(cut.out, "corpus/train_000000.bin: expected a file that stays as it is"), cut.out);
    CHECK(place("$TRAIN --data corpus --out out --resume --set train.steps=1").exit == 3);
    const Outcome resumed = place(
        "cp whole corpus/train_000000.bin; $TRAIN --data corpus --out out --resume --time 0.5s" + endless);
    CHECK_MESSAGE(resumed.exit == 0, resumed.err);
}

TEST_CASE("train holds a corpus's shards against its index: a sample, with --verify all") {
    Place place;
    REQUIRE(place("$LINNET tokenizer train --vocab-size 270 -o t.json text 2>/dev/null; "
                  "$LINNET corpus -t t.json -o corpus --separator 'ten\\n' text 2>/dev/null; "
                  "cp -r corpus whole")
                .exit == 0);
    for (const char* verify : {"", "--verify"}) {
        const Outcome damaged = place(
            "printf '\\1' | dd of=corpus/train_000000.bin bs=1 seek=1100 conv=notrunc "
            "2>/dev/null; $TRAIN --quiet --data corpus --out out " +
            std::string(verify));
        CHECK(damaged.exit == 3);
        CHECK_MESSAGE(is_one_error_line(damaged.err), damaged.err);
        CHECK(has(damaged.err, "train_000000.bin: sha256"));
    }
    for (const char* index :
         {"s/\"sha256\": \"[0-9a-f]*\"/\"sha256\": \"\"/", "s/\"bytes\": [0-9]*/\"bytes\": 1e300/",
          "s/\"documents\": [0-9]*/\"documents\": 18446744073709551615/"}) {
        CAPTURE(std::string(index));
        const Outcome hostile = place("rm -r corpus; cp -r whole corpus; sed -i '" + std::string(index) +
                                      "' corpus/index.json; $TRAIN --quiet --data corpus --out out");
        CHECK(hostile.exit == 3);
        CHECK_MESSAGE(is_one_error_line(hostile.err), hostile.err);
        CHECK(has(hostile.err, "index.json"));
    }
    CHECK(place("$TRAIN --data whole --out out --verify --steps 1").exit == 0);
}

TEST_CASE("a run writes, removes and moves nothing through links that lie in its folder") {
    Place place;
    REQUIRE(place("$TRAIN --data text --out whole --steps 2 2>/dev/null; echo mine > victim; "
                  "cp -r whole elsewhere; cp victim elsewhere/config.json")
                .exit == 0);
    const auto resumed_with = [&](const std::string& links) {
        Outcome done = place("rm -rf out; cp -r whole out; " + links +
                             "\n$TRAIN --data text --out out --resume --steps 4");
        CHECK(place.file("victim") == "mine\n");
        return done;
    };
    // Files by fixed names are replaced; a log is added to, and folders are written into.
    const Outcome files = resumed_with(
        "for f in model.gguf last.gguf report.html config.json; do ln -sf ../victim out/$f; done");
    CHECK_MESSAGE(files.exit == 0, files.err);
    CHECK(place("find out -type l ! -name config.edited.json").out.empty());
    for (const char* link :
         {"ln -sf ../victim out/log.jsonl", "rm -r out/checkpoints; ln -s ../elsewhere/checkpoints out",
          "ln -s ../elsewhere out/hf"}) {
        CAPTURE(std::string(link));
        const Outcome linked = resumed_with(link);
        CHECK(linked.exit == 4);
        CHECK_MESSAGE(has(linked.err, "a symbolic link"), linked.err);
    }
    // What would be put back from there, had a run been set aside.
    CHECK(resumed_with("ln -s ../elsewhere out/.replaced").exit == 0);
    CHECK(place("$TRAIN --data text --out out --overwrite --steps 2").exit == 0);
    CHECK(place("mkdir none; ln -s ../elsewhere none/.replaced; $TRAIN --data text --out none --steps 2")
              .exit == 0);
    CHECK_MESSAGE(
        place("ls -A elsewhere elsewhere/checkpoints; cat elsewhere/config.json").out ==
            "elsewhere:\ncheckpoints\nconfig.json\nlast.gguf\nlog.jsonl\nmodel.gguf\nreport.html\n\n"
            "elsewhere/checkpoints:\nstep-00000002\nmine\n",
        place("ls -A elsewhere elsewhere/checkpoints").out);
}

TEST_CASE("a resumed run keeps an edited config whatever its log and that config hold") {
    Place place;
    REQUIRE(place("$TRAIN --data text --out out --steps 2").exit == 0);
    const std::string log = place.file("out/log.jsonl"), deep(200000, '[');
    write_text(place.s / "out/log.jsonl",
               "{\"event\":\"start\",\"config\":{\"train\":[]}}\n"
               "{\"event\":\"plan\",\"steps\":3}\n"
               "{\"event\":\"start\",\"config\":" +
                   deep + "\n" + log);
    for (const std::string& config : {deep, std::string("{\"train\":7}"), std::string("null")}) {
        write_text(place.s / "out/config.json", config);
        const Outcome resumed = place("$TRAIN --data text --out out --resume --steps 4");
        CHECK_MESSAGE(resumed.exit == 0, resumed.err);
        CHECK_MESSAGE(has(resumed.err, "config.json was edited"), resumed.err);
    }
    CHECK(place.file("out/config.edited.json") == deep);
    CHECK(place.file("out/config.edited-2.json") == "{\"train\":7}");
}

TEST_CASE("going on with another instruction set is said") {
    Place place;
    const Outcome first = place("$TRAIN --data text --out out --steps 2 --isa scalar");
    REQUIRE(first.exit == 0);
    CHECK_FALSE(
        has(place("$TRAIN --data text --out out --resume --steps 4 --isa scalar").err, "--isa chooses"));
    const Outcome other = place("$TRAIN --data text --out out --resume --steps 6");
    CHECK(other.exit == 0);
    if (has(other.err, ", scalar")) return skip("needs a machine with more than the scalar kernels");
    CHECK_MESSAGE(has(other.err, "computed with scalar"), other.err);
}
