#include <doctest/doctest.h>

#include "support.h"

using namespace linnet::test;

TEST_CASE("inspect graph prints the plan, forwards and backwards") {
    Outcome plan = run_linnet({"inspect", "graph", "--rows", "8"});
    CHECK(plan.exit == 0);
    CHECK(plan.out.find("blk.0.attn.q") != std::string::npos);
    CHECK(plan.out.find("backward") == std::string::npos);
    Outcome training = run_linnet({"inspect", "graph", "--training"});
    CHECK(training.out.find("backward cross_entropy") != std::string::npos);
}

TEST_CASE("inspect graph --check looks at every value, the same ones each time") {
    Outcome first = run_linnet({"inspect", "graph", "--check", "-p", "To be"});
    CHECK(first.exit == 0);
    CHECK(first.out.find("logits") != std::string::npos);
    CHECK(first.out.find("NOT FINITE") == std::string::npos);
    CHECK(run_linnet({"inspect", "graph", "--check", "-p", "To be", "--threads", "2"}).out == first.out);
    CHECK(run_linnet({"inspect", "graph", "--check", "-p", "To see"}).out != first.out);
}
