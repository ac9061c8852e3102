// Recurrences that carry a state from one row of a sequence to the next. They run row after row, so where a
// prompt is cut never shows; lanes are channels, so neither does the split over threads.
//
// Backward needs the states of all rows. Forward keeps one at every scan_chunk-th row of the batch, and
// backward computes those between again.
#pragma once
#include <cstdint>

namespace linnet {

inline constexpr std::int64_t scan_chunk = 16;         // rows
inline constexpr std::int64_t scan_channels = 32;      // of selective_scan_backward, at most, in one call
inline constexpr std::int64_t scan_most_states = 256;  // N

/// Mamba's selective scan (Gu & Dao 2023, section 3.2, algorithm 2): of each channel, with Δ = softplus(dt),
///   h[n] ← exp(Δ a[n]) h[n] + Δ x b[n],   y = Σ c[n] h[n] + skip x.
template <class Real>
struct SelectiveScan {
    std::int64_t rows = 0, first = 0;          // T; the first one's number in the batch
    std::int64_t channels = 0, states = 0;     // C, N
    const Real *x = nullptr, *dt = nullptr;    // [T, C]
    const Real *b = nullptr, *c = nullptr;     // [T, N]
    const Real *a = nullptr, *skip = nullptr;  // [C, N], [C]
    Real* state = nullptr;                     // [N, C], read and updated; null: begins as 0
    /// [k, N, C]: k-th is h before row (k + 1) · scan_chunk of the batch; null: not kept.
    Real* kept = nullptr;
    Real* y = nullptr;  // [T, C]
};

template <class Real>
struct SelectiveScanBackward {
    SelectiveScan<Real> forward;  // without state
    const Real* dy = nullptr;
    Real *dx = nullptr, *ddt = nullptr;  // null: not wanted
    bool accumulate_x = false, accumulate_dt = false;
    Real* dbc = nullptr;                   // [T, 2, N]: these channels' part of db and dc, written
    Real *da = nullptr, *dskip = nullptr;  // added to; null: not wanted
};

/// One head of a recurrence on a matrix S [N, P], keys × values (Katharopoulos et al. 2020; with decays Yang
/// et al. 2024, "Gated linear attention"; with the delta rule RWKV-7, Peng et al. 2025, section 4):
///   S ← diag(w) S + b (aᵀ S) + k vᵀ,   y = rᵀ S.
template <class Real>
struct MatrixScan {
    std::int64_t rows = 0, first = 0;                    // as above
    std::int64_t keys = 0, values = 0;                   // N, P
    std::int64_t key_row = 0, w_row = 0, value_row = 0;  // elements from one row to the next
    const Real *r = nullptr, *w = nullptr, *k = nullptr, *v = nullptr;
    const Real *a = nullptr, *b = nullptr;  // null: without this term
    bool one_decay = false;                 // w is one number per row
    bool before = false;                    // y reads S as it was before this row
    Real* state = nullptr;                  // [N, P], as above
    Real* kept = nullptr;                   // [k][N, P], kept_row elements apart
    std::int64_t kept_row = 0;
    Real* y = nullptr;
};

/// Gradients are at the same places as what they belong to; null: not wanted.
template <class Real>
struct MatrixScanBackward {
    MatrixScan<Real> forward;  // without state
    const Real* dy = nullptr;
    Real *dr = nullptr, *dw = nullptr, *dk = nullptr, *dv = nullptr, *da = nullptr, *db = nullptr;
    bool accumulate_r = false, accumulate_w = false, accumulate_k = false, accumulate_v = false,
         accumulate_a = false, accumulate_b = false;
};

}  // namespace linnet
