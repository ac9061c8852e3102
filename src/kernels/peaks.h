// The machine's limits, measured: what no kernel can beat.
#pragma once

namespace linnet {

/// Multiply-adds on registers alone, all threads at once, in the instruction set in force: FLOP/s (the best
/// of several tries, as a limit is what is asked for).
double measured_peak_flops(int threads);

/// The same for dot products of bf16 (into float) and of int8 (into int32), where the CPU has instructions
/// for them; else 0.
double measured_bf16_flops(int threads);
double measured_int8_ops(int threads);
/// And for bf16 on matrix units; 0 where there are none, or another instruction set is in force.
double measured_tile_flops(int threads);

/// Bytes per second read from memory by all threads together, each in `streams` places at a time: the best of
/// the numbers of places that are tried, from an array several times as large as the last cache.
struct ReadBandwidth {
    double bytes_per_s = 0;
    int streams = 0;
};
ReadBandwidth measured_read_bandwidth(int threads);

}  // namespace linnet
