// What a forecast's rows are made of.
#include "train/forecast/forecast.h"

#include <doctest/doctest.h>

#include "commands/tiny.h"
#include "support.h"
#include "train/law.h"

using namespace linnet;

TEST_CASE("a row's bits are the law's of as many readings, moved to what the pilot found") {
    const test::Scratch s;
    std::string text;
    while (text.size() < 100'000) text += test::counting_text();
    test::write_text(s / "text", text);
    TrainingOptions options;
    options.data.inputs = {s / "text"};
    options.time_limit_s = 6, options.threads = 1;
    const Forecast told = forecast(options);
    REQUIRE(told.rows.size() >= 2);
    REQUIRE(told.pilot.bits_per_byte);
    for (const ForecastRow& row : told.rows) {
        // Of this text all tokenizers are of bytes, so that tokens are bytes.
        REQUIRE(row.config["tokenizer"]["kind"] == "byte");
        const double bytes = static_cast<double>(row.tokens) / row.epochs,
                     held_out = row.config["train"]["validation_fraction"];
        CHECK(bytes == doctest::Approx((1 - held_out) * double(text.size())).epsilon(1e-3));
        const auto expected = [&](std::int64_t parameters, std::int64_t read) {
            return expected_bits({double(parameters), double(read), bytes});
        };
        REQUIRE(row.bits_per_byte);
        CHECK(*row.bits_per_byte ==
              doctest::Approx(bits_of_text(expected(row.parameters, row.tokens),
                                           {expected(told.pilot.parameters, told.pilot.tokens),
                                            *told.pilot.bits_per_byte}))
                  .epsilon(1e-3));
    }
}
