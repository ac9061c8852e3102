// The test program: doctest's runner, closing on one plain line that any CI can read.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "base/processors.h"
#include "support.h"

namespace {

int passed = 0, failed = 0, skipped = 0;

/// Counts test cases for the closing line; doctest's own summary stays.
struct Tally : doctest::IReporter {
    int skips_before = 0;
    explicit Tally(const doctest::ContextOptions&) {}
    void report_query(const doctest::QueryData&) override {}
    void test_run_start() override {}
    void test_run_end(const doctest::TestRunStats&) override {}
    void test_case_start(const doctest::TestCaseData&) override { skips_before = linnet::test::skipped(); }
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
        bool was_skipped = linnet::test::skipped() > skips_before;  // a test may ask for several files
        (!stats.testCaseSuccess ? failed : was_skipped ? skipped : passed)++;
    }
    void test_case_exception(const doctest::TestCaseException&) override {}
    void subcase_start(const doctest::SubcaseSignature&) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData&) override {}
    void log_message(const doctest::MessageData&) override {}
    void test_case_skipped(const doctest::TestCaseData&) override {}
};

}  // namespace

DOCTEST_REGISTER_LISTENER("tally", 1, Tally);

int main(int argc, char** argv) {
    // Teams of several members on a machine of few processors too: results must not depend on who does what.
    linnet::assume_processors(8);
    doctest::Context context;
    context.setOption("no-intro", true);
    context.applyCommandLine(argc, argv);
    int result = context.run();
    if (context.shouldExit()) return result;  // --help, --list-test-cases: nothing ran
    std::fflush(nullptr);
    std::printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return result;
}
