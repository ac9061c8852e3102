// Settings that differ by layer, from --set to the text that the model writes.
#include <doctest/doctest.h>

#include "commands/tiny.h"
#include "support.h"

using namespace linnet::test;

TEST_CASE("a model whose layers differ is trained to the same file by any number of threads, and generates") {
    Scratch scratch;
    write_text(scratch / "text", counting_text());
    write_text(scratch / "config", tiny_config());
    auto train = [&](const std::string& out, const std::string& more) {
        return run_shell("cd '" + scratch.path +
                         "' && $LINNET train config --data text --quiet --set model.layers=3"
                         " --set 'model.attention.window=[8,0]' --set 'model.position.kind=[rope,none,rope]'"
                         " --set 'model.kv_heads=[2,1]' --set 'model.ffn.width=[32,64,48]' --out " +
                         out + " " + more);
    };
    Outcome one = train("one", "--threads 1");
    REQUIRE_MESSAGE(one.exit == 0, one.err);
    REQUIRE(train("three", "--threads 3").exit == 0);
    CHECK(read_text(scratch / "one/model.gguf") == read_text(scratch / "three/model.gguf"));
    Outcome told = run_linnet({"inspect", "--json", scratch / "one/model.gguf"});
    CHECK(told.out.find(R"(\"window\":[8,0])") != std::string::npos);
    Outcome text = run_linnet({"generate", "-m", scratch / "one/model.gguf", "-p", "one two ", "-n", "12",
                               "--temp", "0", "--threads", "1"});
    CHECK(text.exit == 0);
    CHECK(text.out.size() >= 12);
    Outcome longer = train("no", "--set 'model.attention.window=[1,2,3,4]'");
    CHECK(longer.exit == 3);
    CHECK(longer.err.find("model.attention.window: expected at most 3 values, one per layer, got 4") !=
          std::string::npos);
}
