// How weights become blocks: the search for scales and offsets with the least weighted squared error. Nothing
// here knows how a block is laid out.
//
// For a group of weights x with importances w, and whole numbers q out of a type's levels, the error
//     E = Σ w (x - scale·q - offset)²
// is least in q, scale and offset held, at the level nearest to (x - offset) / scale; and in scale and
// offset, q held, at the solution of the normal equations. Alternating the two (the method of Lloyd and Max)
// ends in a local minimum, so it is begun from several scales, and the one with the least measured error is
// kept. Where scales are themselves stored as whole codes of one number per block, codes beside the nearest
// are tried with q chosen anew, and the block's number follows by least squares; that is repeated while the
// error falls.
#pragma once
#include "kernels/types/parts.inl"

namespace linnet {
namespace {

/// The levels low, low + 1, … high.
template <int low_, int high_>
struct Steps {
    static constexpr int low = low_, high = high_;
    static constexpr double try_by = 0.125;  // starts are low (high) ± so much
    static Vec nearest(Vec y) { return max(set1(low), min(set1(high), round(y))); }
};

/// The sixteen levels of a table.
template <const Whole (&table)[16], int count>
struct Table {
    static constexpr int low{table[0]}, high{table[count - 1]};
    static constexpr double try_by = (high - low) / 120.0;
    static Vec nearest(Vec y) {
        Vec level = set1(low);
        for (int i = 1; i < count; i++) {
            Real middle = Real(0.5) * static_cast<Real>(table[i] + table[i - 1]);
            level = level + if_positive(y - set1(middle), set1(table[i] - table[i - 1]), zero());
        }
        return level;
    }
};

inline Real magnitude(Real x) {
    return static_cast<Real>(__builtin_fabs(static_cast<double>(x)));
}
inline Real most_of(Real a, Real b) {
    return a > b ? a : b;
}

/// 1 / scale; 0 where that is beyond f32, so that no level is infinite.
inline Real inverse_of(Real scale) {
    return magnitude(scale) > Real(1e-37) ? 1 / scale : 0;
}

/// What the squared errors of a block's weights count: a weight's importance times a factor that grows with
/// its magnitude, so that large weights, which predictions hang on, are kept closer at the cost of a little
/// squared error; `steep` for the coarsest types, where it matters most.
enum class Lean { slight, steep };
template <int64_t n>
struct Weights {
    Weights(const Real* x, const Real* importance, Lean lean = Lean::slight) {
        Real squares = 0;
        for (int64_t i = 0; i < n; i++) squares += x[i] * x[i];
        const double mean = static_cast<double>(squares) / n;
        const auto typical = static_cast<Real>(__builtin_sqrt(mean));
        for (int64_t i = 0; i < n; i++) {
            Real factor = magnitude(x[i]);
            if (lean == Lean::slight)
                factor =
                    importance
                        ? static_cast<Real>(__builtin_sqrt(2 * mean + static_cast<double>(factor * factor)))
                        : typical + factor;
            of[i] = (importance ? importance[i] : 1) * (factor + Real(1e-9));
        }
    }
    Real of[n];
};

/// Weighted sums over a group, q being the nearest levels: of w, wq, wqq, wx, wxq, and the error.
struct Sums {
    Real one, q, qq, x, xq, error;
};

template <class Levels, int64_t n>
Sums measure(const Real* x, const Real* w, Real scale, Real offset) {
    Vec one = zero(), q1 = zero(), qq = zero(), x1 = zero(), xq = zero(), error = zero();
    Vec inverse = set1(inverse_of(scale));
    for (int64_t i = 0; i < n; i += W) {
        Vec xi = load(x + i), wi = load(w + i), q = Levels::nearest((xi - set1(offset)) * inverse),
            wq = wi * q;
        Vec left = fnma(set1(scale), q, xi - set1(offset));
        one = one + wi, q1 = q1 + wq, qq = fma(wq, q, qq), x1 = fma(wi, xi, x1), xq = fma(wq, xi, xq);
        error = fma(wi * left, left, error);
    }
    return {sum(one), sum(q1), sum(qq), sum(x1), sum(xq), sum(error)};
}

template <class Levels, int64_t n>
void choose(const Real* x, Real scale, Real offset, Whole* q) {
    Real level[n];
    Vec inverse = set1(inverse_of(scale));
    for (int64_t i = 0; i < n; i += W)
        store(level + i, Levels::nearest((load(x + i) - set1(offset)) * inverse));
    for (int64_t i = 0; i < n; i++) q[i] = static_cast<Whole>(level[i]);
}

struct Line {
    Real scale = 0, offset = 0, error = 0;
};

/// The best scale found for a group without an offset.
template <class Levels, int64_t n>
Line fit_scale(const Real* x, const Real* w) {
    Real extreme = 0;  // the value farthest from 0
    for (int64_t i = 0; i < n; i++)
        if (__builtin_fabs(double(x[i])) > __builtin_fabs(double(extreme))) extreme = x[i];
    Line best{0, 0, measure<Levels, n>(x, w, 0, 0).error};
    if (extreme == 0) return best;
    auto consider = [&](Real scale) {
        Sums s = measure<Levels, n>(x, w, scale, 0);
        if (s.error < best.error) best = {scale, 0, s.error};
        return s.qq > 0 ? s.xq / s.qq : Real(0);
    };
    for (int end : {Levels::low, Levels::high})
        for (int step = -12; step <= 8; step++) {
            Real level = static_cast<Real>(end + (end < 0 ? -1 : 1) * step * Levels::try_by);
            consider(consider(extreme / level));
        }
    for (Real before = 0; before != best.scale;) {
        before = best.scale;
        consider(consider(best.scale));
    }
    return best;
}

/// Scale and offset with the least error, given a group's sums: the normal equations. Where `below` the
/// offset must not exceed 0.
inline Line solve(const Sums& s, bool below) {
    Real determinant = s.one * s.qq - s.q * s.q;
    Line line;
    if (determinant > 0) {
        line.scale = (s.one * s.xq - s.x * s.q) / determinant;
        line.offset = (s.qq * s.x - s.q * s.xq) / determinant;
    }
    if (!(determinant > 0) || (below && line.offset > 0)) line = {s.qq > 0 ? s.xq / s.qq : 0, 0, 0};
    return line;
}

/// The best scale and offset found for a group whose levels begin at 0.
template <class Levels, int64_t n, bool below>
Line fit_line(const Real* x, const Real* w) {
    Real least = x[0], most = x[0];
    for (int64_t i = 1; i < n; i++) {
        if (x[i] < least) least = x[i];
        if (x[i] > most) most = x[i];
    }
    if (below && least > 0) least = 0;
    Line best{0, least, measure<Levels, n>(x, w, 0, least).error};
    if (!(most > least)) return best;
    auto consider = [&](Line line) {
        Sums s = measure<Levels, n>(x, w, line.scale, line.offset);
        if (s.error < best.error) best = {line.scale, line.offset, s.error};
        return solve(s, below);
    };
    for (int step = -10; step <= 8; step++) {
        Real top = static_cast<Real>(Levels::high + step * 0.0125 * (Levels::high + 5));
        consider(consider(consider({(most - least) / top, least, 0})));
    }
    Real before;
    do {
        before = best.error;
        consider(consider(best));
    } while (best.error < before);  // also false where it is no number
    return best;
}

/// Whether none of x is infinite or NaN: what 0 times it is not 0.
template <int64_t n>
bool all_finite(const Real* x) {
    Real doubt = 0;
    for (int64_t i = 0; i < n; i++) doubt += x[i] * 0;
    return doubt == 0;
}
/// A block that begins with its scale: NaN, and so all of its weights.
template <int64_t bytes>
void spoil_block(char* block) {
    __builtin_memset(block, 0, bytes);
    block[1] = 0x7E;  // of a half in two bytes, the second one
}

/// As a half, the way it will be read back.
inline Real as_half(Real x, char* to) {
    uint16_t half = to_half(static_cast<float>(x));
    __builtin_memcpy(to, &half, sizeof half);
    return one_half(half);
}
inline Real as_half(Real x) {
    char half[2];
    return as_half(x, half);
}

/// A block with one scale, stored as a half, and no offset: the scale, and the levels.
template <class Levels, int64_t n>
void fit_block(const Real* x, const Real* importance, char* scale, Whole* q) {
    Weights<n> w(x, importance);
    choose<Levels, n>(x, as_half(fit_scale<Levels, n>(x, w.of).scale, scale), 0, q);
}

inline int nearest_code(Real x, int low, int high) {
    if (!(x > static_cast<Real>(low))) return low;
    if (x >= static_cast<Real>(high)) return high;
    return static_cast<int>(x + (x < 0 ? Real(-0.5) : Real(0.5)));
}

/// A block whose groups have scales d · code without offsets, as found so far.
template <int64_t groups>
struct ScaledCodes {
    Real d = 0, error = -1;  // no error yet: nothing found
    int code[groups] = {};
};

/// One round: with d given, the codes beside the nearest to each group's own scale. Returns the d that fits
/// them best.
template <class Block, class Levels>
Real try_codes(const Real* x, const Real* w, const Line* fit, Real d, int low, int high,
               ScaledCodes<Block::elements / Block::group>& best) {
    ScaledCodes<Block::elements / Block::group> here;
    here.d = as_half(d), here.error = 0;
    Real xq = 0, qq = 0;
    for (int64_t g = 0; g < Block::elements / Block::group; g++) {
        const Real *xg = x + g * Block::group, *wg = w + g * Block::group;
        int middle = nearest_code(here.d != 0 ? fit[g].scale / here.d : 0, low, high);
        Sums chosen{};
        for (int code = middle - 1; code <= middle + 1; code++) {
            if (code < low || code > high) continue;
            Sums s = measure<Levels, Block::group>(xg, wg, here.d * static_cast<Real>(code), 0);
            if (chosen.one != 0 && s.error >= chosen.error) continue;
            chosen = s, here.code[g] = code;
        }
        Real code = static_cast<Real>(here.code[g]);
        xq += code * chosen.xq, qq += code * code * chosen.qq;
        here.error += chosen.error;
    }
    if (best.error < 0 || here.error < best.error) best = here;
    return qq > 0 ? xq / qq : d;
}

/// A block of groups without offsets whose scales are d · code, code in [low, high].
template <class Block, class Levels>
void fit_scaled(const Real* x, const Real* w, int low, int high,
                ScaledCodes<Block::elements / Block::group>& best, Whole* q) {
    constexpr int64_t groups = Block::elements / Block::group;
    Line fit[groups];
    Real largest = 0;
    for (int64_t g = 0; g < groups; g++) {
        fit[g] = fit_scale<Levels, Block::group>(x + g * Block::group, w + g * Block::group);
        if (__builtin_fabs(double(fit[g].scale)) > __builtin_fabs(double(largest))) largest = fit[g].scale;
    }
    for (int end : {low, high})
        for (int step = 0; step < 3; step++) {
            Real d = largest / static_cast<Real>(end) * (1 + Real(0.02) * static_cast<Real>(step - 1));
            for (int round = 0; round < 3; round++)
                d = try_codes<Block, Levels>(x, w, fit, d, low, high, best);
        }
    for (int64_t g = 0; g < groups; g++)
        choose<Levels, Block::group>(x + g * Block::group, best.d * static_cast<Real>(best.code[g]), 0,
                                     q + g * Block::group);
}

/// A block whose groups have scales d · s and offsets -dmin · m.
template <int64_t groups>
struct LineCodes {
    Real d = 0, dmin = 0, error = -1;
    int s[groups] = {}, m[groups] = {};
};

template <class Block, class Levels>
Line try_lines(const Real* x, const Real* w, const Line* fit, Real d, Real dmin, int high,
               LineCodes<Block::elements / Block::group>& best) {
    LineCodes<Block::elements / Block::group> here;
    here.d = as_half(d), here.dmin = as_half(dmin), here.error = 0;
    Sums all{};  // of the block, with s·q as q and -m as the constant
    Real qm = 0, mm = 0, xm = 0;
    for (int64_t g = 0; g < Block::elements / Block::group; g++) {
        const Real *xg = x + g * Block::group, *wg = w + g * Block::group;
        int s0 = nearest_code(here.d != 0 ? fit[g].scale / here.d : 0, 0, high);
        int m0 = nearest_code(here.dmin != 0 ? -fit[g].offset / here.dmin : 0, 0, high);
        Sums chosen{};
        for (int s = s0 - 1; s <= s0 + 1; s++)
            for (int m = m0 - 1; m <= m0 + 1; m++) {
                if (s < 0 || m < 0 || s > high || m > high) continue;
                Sums sums = measure<Levels, Block::group>(xg, wg, here.d * static_cast<Real>(s),
                                                          -(here.dmin * static_cast<Real>(m)));
                if (chosen.one != 0 && sums.error >= chosen.error) continue;
                chosen = sums, here.s[g] = s, here.m[g] = m;
            }
        Real s = static_cast<Real>(here.s[g]), m = static_cast<Real>(here.m[g]);
        all.qq += s * s * chosen.qq, all.xq += s * chosen.xq;
        qm += s * m * chosen.q, mm += m * m * chosen.one, xm += m * chosen.x;
        here.error += chosen.error;
    }
    if (best.error < 0 || here.error < best.error) best = here;
    // x ≈ d·(s q) - dmin·m, by least squares.
    Real determinant = all.qq * mm - qm * qm;
    if (!(determinant > 0)) return {all.qq > 0 ? all.xq / all.qq : d, dmin, 0};
    return {(all.xq * mm - xm * qm) / determinant, (all.xq * qm - xm * all.qq) / determinant, 0};
}

/// A block of groups with scales d · s and offsets -dmin · m, s and m in [0, high].
template <class Block, class Levels>
void fit_lines(const Real* x, const Real* w, int high, LineCodes<Block::elements / Block::group>& best,
               Whole* q) {
    constexpr int64_t groups = Block::elements / Block::group;
    Line fit[groups];
    Real scale = 0, depth = 0;
    for (int64_t g = 0; g < groups; g++) {
        fit[g] = fit_line<Levels, Block::group, true>(x + g * Block::group, w + g * Block::group);
        if (fit[g].scale > scale) scale = fit[g].scale;
        if (-fit[g].offset > depth) depth = -fit[g].offset;
    }
    for (int step = 0; step < 3; step++) {
        Real widen = 1 - Real(0.08) * static_cast<Real>(step);
        Real d = scale / static_cast<Real>(high) * widen, dmin = depth / static_cast<Real>(high) * widen;
        for (int round = 0; round < 3; round++) {
            Line next = try_lines<Block, Levels>(x, w, fit, d, dmin, high, best);
            d = next.scale > 0 ? next.scale : 0, dmin = next.offset > 0 ? next.offset : 0;
        }
    }
    for (int64_t g = 0; g < groups; g++)
        choose<Levels, Block::group>(x + g * Block::group, best.d * static_cast<Real>(best.s[g]),
                                     -(best.dmin * static_cast<Real>(best.m[g])), q + g * Block::group);
}

}  // namespace
}  // namespace linnet
