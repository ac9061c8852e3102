// linnet bench machine: this machine's peaks, which other figures are shares of.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/team.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "kernels/kernels.h"
#include "kernels/peaks.h"

namespace linnet {
namespace {

int run(bool json, const Globals& globals) {
    int threads = threads_or_cores(globals.threads);
    double flops = measured_peak_flops(threads);
    const ReadBandwidth read = measured_read_bandwidth(threads);
    double bf16 = measured_bf16_flops(threads), int8 = measured_int8_ops(threads),
           tiles = measured_tile_flops(threads);
    if (json) {
        nlohmann::ordered_json out{{"f32_flops", flops},
                                   {"bf16_flops", bf16},
                                   {"int8_ops", int8},
                                   {"tile_flops", tiles},
                                   {"memory_read_bytes_per_s", read.bytes_per_s},
                                   {"memory_read_streams", read.streams},
                                   {"threads", threads},
                                   {"isa", kernels().name}};
        write_stdout(out.dump() + "\n");
        return 0;
    }
    char text[300];
    std::snprintf(text, sizeof text,
                  "f32          %8.1f GFLOP/s\n"
                  "bf16         %8.1f GFLOP/s\n"
                  "int8         %8.1f GOP/s\n"
                  "tiles, bf16  %8.1f GFLOP/s\n"
                  "memory read  %8.1f GB/s (%d stream%s per thread)\n"
                  "(%d threads, %s)\n",
                  flops / 1e9, bf16 / 1e9, int8 / 1e9, tiles / 1e9, read.bytes_per_s / 1e9, read.streams,
                  read.streams == 1 ? "" : "s", threads, kernels().name);
    write_stdout(text);
    return 0;
}

}  // namespace

Action add_bench_machine(CLI::App& app, const Globals& globals) {
    auto json = std::make_shared<bool>(false);
    app.add_flag("--json", *json,
                 "one JSON object: f32_flops, bf16_flops, int8_ops, tile_flops (0: no such instructions), "
                 "memory_read_bytes_per_s, memory_read_streams, threads, isa");
    return [json, &globals] { return run(*json, globals); };
}

}  // namespace linnet
