// The test program: doctest's runner, closing on one plain line that any CI can read.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "support.h"

namespace {

/// Counts test cases for the closing line; doctest's own summary stays.
struct Tally : doctest::IReporter {
    int passed = 0, failed = 0;
    explicit Tally(const doctest::ContextOptions&) {}
    void report_query(const doctest::QueryData&) override {}
    void test_run_start() override {}
    void test_run_end(const doctest::TestRunStats&) override {
        std::fflush(nullptr);
        std::printf("%d passed, %d failed, %d skipped\n", passed - linnet::test::skipped(), failed,
                    linnet::test::skipped());
        std::fflush(stdout);
    }
    void test_case_start(const doctest::TestCaseData&) override {}
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
        (stats.testCaseSuccess ? passed : failed)++;
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
    doctest::Context context(argc, argv);
    return context.run();
}
