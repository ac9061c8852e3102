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

/// Bytes a second read from memory by all threads together, from an array far larger than any cache.
double measured_read_bandwidth(int threads);

}  // namespace linnet
