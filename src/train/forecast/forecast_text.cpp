#include "train/forecast/forecast_text.h"

#include <cstdio>

#include "base/terminal.h"
#include "train/log.h"

namespace linnet {
namespace {

double mib(double bytes) {
    return bytes / (1 << 20);
}

/// Of what is a forecast.
double shortened(double value) {
    return with_digits(value, 4);
}

}  // namespace

std::string forecast_lines(const Forecast& forecast) {
    std::string text;
    for (const ForecastRow& row : forecast.rows) {
        nlohmann::ordered_json line{{"parameters", row.parameters},
                                    {"tokens", row.tokens},
                                    {"batch", row.batch},
                                    {"memory_mib", shortened(mib(row.memory))},
                                    {"disk_mib", shortened(mib(row.disk))},
                                    {"bpb", nullptr},
                                    {"best", row.best},
                                    {"width", row.width},
                                    {"layers", row.layers},
                                    {"steps", row.steps},
                                    {"epochs", shortened(row.epochs)},
                                    {"seconds", shortened(row.seconds)},
                                    {"config", row.config}};
        if (row.bits_per_byte) line["bpb"] = shortened(*row.bits_per_byte);
        text += line.dump() + "\n";
    }
    return text;
}

std::string forecast_table(const Forecast& forecast) {
    char line[200];
    std::snprintf(line, sizeof line, "  %-15s %10s %8s %8s %6s %9s %9s %8s %14s\n", "layers x width",
                  "parameters", "tokens", "epochs", "batch", "memory", "disk", "time", "bits per byte");
    std::string text = line;
    for (const ForecastRow& row : forecast.rows) {
        const std::string shape = std::to_string(row.layers) + " x " + std::to_string(row.width);
        char bits[32] = "-";
        if (row.bits_per_byte) std::snprintf(bits, sizeof bits, "%.2f", *row.bits_per_byte);
        std::snprintf(line, sizeof line, "%c %-15s %10s %8s %8.2g %6lld %9s %9s %8s %14s\n",
                      row.best ? '*' : ' ', shape.c_str(),
                      human_count(static_cast<double>(row.parameters)).c_str(),
                      human_count(static_cast<double>(row.tokens)).c_str(), row.epochs,
                      static_cast<long long>(row.batch), human_bytes(row.memory).c_str(),
                      human_bytes(row.disk).c_str(), human_seconds(row.seconds).c_str(), bits);
        text += line;
    }
    return text + "* what `linnet train` with this --data and --time trains\n";
}

}  // namespace linnet
