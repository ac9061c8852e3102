// Everything that touches each value once: activations, sums, rotations, conversions. An element's bits do
// not depend on where in the array it stands: tails take the same instructions as whole vectors, on fewer
// lanes.
#pragma once
#include "kernels/stored.inl"

namespace linnet {
namespace {

// The activations, each with its derivative.
struct Relu {
    static void at(Vec x, Vec& y, Vec& derivative) {
        y = if_positive(x, x, x * zero());  // x · 0 keeps a NaN
        derivative = if_positive(x, set1(1), zero());
    }
};
/// x·Φ(x) (Hendrycks & Gimpel 2016).
struct Gelu {
    static void at(Vec x, Vec& y, Vec& derivative) {
        Vec cdf, pdf;
        normal(x, cdf, pdf);
        y = x * cdf;
        derivative = fma(x, pdf, cdf);
    }
};
inline Vec sigmoid(Vec x) {
    return set1(1) / (set1(1) + exp(zero() - x));
}
/// ½x(1 + tanh u) with u = √(2/π)(x + 0.044715x³); since ½(1 + tanh u) = sigmoid(2u) no tanh is needed.
struct GeluTanh {
    static void at(Vec x, Vec& y, Vec& derivative) {
        Vec two_c = set1(Real(2 * 0.79788456080286535588)), cube = set1(Real(0.044715));
        Vec square = x * x;
        Vec s = sigmoid(two_c * fma(cube * square, x, x));
        y = x * s;
        derivative = fma(y * (set1(1) - s), two_c * fma(set1(3) * cube, square, set1(1)), s);
    }
};
struct Silu {
    static void at(Vec x, Vec& y, Vec& derivative) {
        Vec s = sigmoid(x);
        y = x * s;
        derivative = fma(y, set1(1) - s, s);
    }
};
/// relu(x)² (So et al. 2021, Primer).
struct Relu2 {
    static void at(Vec x, Vec& y, Vec& derivative) {
        Vec r;
        Relu::at(x, r, derivative);
        y = r * r;
        derivative = r + r;
    }
};
/// 2 sigmoid(2x) - 1.
struct Tanh {
    static void at(Vec x, Vec& y, Vec& derivative) {
        y = fma(set1(2), sigmoid(x + x), set1(-1));
        derivative = fnma(y, y, set1(1));
    }
};

struct Sigmoid {
    static void at(Vec x, Vec& y, Vec& derivative) {
        y = sigmoid(x);
        derivative = fnma(y, y, y);
    }
};
/// log(1 + e^x) = max(x, 0) + log(1 + e) with e = e^-|x|, and log(1 + e) = 2 artanh(s) with s = e / (2 + e),
/// at most 1/3: its series, as far as the type's digits go.
inline Vec softplus(Vec x) {
    Vec e = exp(zero() - abs(x)), s = e / (set1(2) + e), square = s * s, series = zero();
    constexpr int last = sizeof(Real) == 4 ? 15 : 33;
    for (int i = last; i >= 1; i -= 2) series = fma(series, square, set1(Real(2) / Real(i)));
    return fma(series, s, if_positive(x, x, x * zero()));
}
struct Softplus {
    static void at(Vec x, Vec& y, Vec& derivative) {
        y = softplus(x);
        derivative = sigmoid(x);
    }
};
struct Exp {
    static void at(Vec x, Vec& y, Vec& derivative) { y = derivative = exp(x); }
};
/// elu(x) + 1 = max(x, 0) + e^min(x, 0): positive features (Katharopoulos et al. 2020, equation 7).
struct Elu1 {
    static void at(Vec x, Vec& y, Vec& derivative) {
        derivative = exp(if_positive(x, zero(), x));
        y = derivative + if_positive(x, x, zero());
    }
};

template <class F>
inline void with_activation(Activation kind, F f) {
    switch (kind) {
        case Activation::relu:
            return f(Relu{});
        case Activation::gelu:
            return f(Gelu{});
        case Activation::gelu_tanh:
            return f(GeluTanh{});
        case Activation::silu:
            return f(Silu{});
        case Activation::relu2:
            return f(Relu2{});
        case Activation::tanh:
            return f(Tanh{});
        case Activation::sigmoid:
            return f(Sigmoid{});
        case Activation::softplus:
            return f(Softplus{});
        case Activation::exp:
            return f(Exp{});
        case Activation::elu1:
            return f(Elu1{});
    }
}

inline void activation(Activation kind, int64_t n, const Real* x, Real* y) {
    with_activation(kind, [&](auto f) {
        each_vector(n, [&](int64_t i, int64_t some) {
            Vec value, derivative;
            f.at(load_n(x + i, some), value, derivative);
            store_n(y + i, value, some);
        });
    });
}

inline void activation_backward(Activation kind, int64_t n, const Real* x, const Real* dy, Real* dx,
                                bool accumulate) {
    with_activation(kind, [&](auto f) {
        each_vector(n, [&](int64_t i, int64_t some) {
            Vec value, derivative;
            f.at(load_n(x + i, some), value, derivative);
            Vec d = load_n(dy + i, some) * derivative;
            if (accumulate) d = d + load_n(dx + i, some);
            store_n(dx + i, d, some);
        });
    });
}

inline void gated(Activation kind, int64_t n, const Real* gate, const Real* up, Real* y) {
    with_activation(kind, [&](auto f) {
        each_vector(n, [&](int64_t i, int64_t some) {
            Vec value, derivative;
            f.at(load_n(gate + i, some), value, derivative);
            store_n(y + i, value * load_n(up + i, some), some);
        });
    });
}

inline void gated_backward(Activation kind, int64_t n, const Real* gate, const Real* up, const Real* dy,
                           Real* dgate, Real* dup, bool accumulate_gate, bool accumulate_up) {
    with_activation(kind, [&](auto f) {
        each_vector(n, [&](int64_t i, int64_t some) {
            Vec value, derivative, d = load_n(dy + i, some);
            f.at(load_n(gate + i, some), value, derivative);
            Vec to_gate = d * load_n(up + i, some) * derivative, to_up = d * value;
            if (accumulate_gate) to_gate = to_gate + load_n(dgate + i, some);
            if (accumulate_up) to_up = to_up + load_n(dup + i, some);
            store_n(dgate + i, to_gate, some);
            store_n(dup + i, to_up, some);
        });
    });
}

inline void add(int64_t n, const Real* a, const Real* b, Real* y) {
    each_vector(
        n, [&](int64_t i, int64_t some) { store_n(y + i, load_n(a + i, some) + load_n(b + i, some), some); });
}

inline void scale(int64_t n, Real factor, const Real* x, Real* y) {
    Vec f = set1(factor);
    each_vector(n, [&](int64_t i, int64_t some) { store_n(y + i, f * load_n(x + i, some), some); });
}

/// Rounded twice, as the loops that it stands for.
inline void multiply(int64_t n, const Real* a, const Real* b, Real* y, bool accumulate) {
    each_vector(n, [&](int64_t i, int64_t some) {
        Vec v = load_n(a + i, some) * load_n(b + i, some);
        store_n(y + i, accumulate ? load_n(y + i, some) + v : v, some);
    });
}

inline double sum_squares(int64_t n, const Real* x) {
    Wide a = wide_zero(), b = wide_zero();
    int64_t i = 0;
    for (; i + 2 * W <= n; i += 2 * W) {
        add_squares_to(a, load(x + i));
        add_squares_to(b, load(x + i + W));
    }
    each_vector(n - i, [&](int64_t j, int64_t some) { add_squares_to(a, load_n(x + i + j, some)); });
    return sum(a) + sum(b);
}

/// One vector of pairs, `some` of them in use.
inline void rope_vector(bool halves, int64_t half, const Real* cos_sin, Vec sign, const Real* x, Real* y,
                        int64_t i, int64_t some, bool accumulate) {
    Real pairs[2 * W] = {};
    Vec c, s, x0, x1, y0, y1;
    auto get = [&](const Real* from, Vec& a, Vec& b) {
        if (some == W) return load_pairs(from, a, b);
        for (int64_t k = 0; k < 2 * some; k++) pairs[k] = from[k];
        load_pairs(pairs, a, b);
    };
    get(cos_sin + 2 * i, c, s);
    if (halves)
        x0 = load_n(x + i, some), x1 = load_n(x + half + i, some);
    else
        get(x + 2 * i, x0, x1);
    s = s * sign;
    y0 = fnma(x1, s, x0 * c);
    y1 = fma(x0, s, x1 * c);
    if (accumulate) {
        Vec a, b;
        if (halves)
            a = load_n(y + i, some), b = load_n(y + half + i, some);
        else
            get(y + 2 * i, a, b);
        y0 = y0 + a, y1 = y1 + b;
    }
    if (halves) {
        store_n(y + i, y0, some);
        store_n(y + half + i, y1, some);
    } else if (some == W) {
        store_pairs(y + 2 * i, y0, y1);
    } else {
        store_pairs(pairs, y0, y1);
        for (int64_t k = 0; k < 2 * some; k++) y[2 * i + k] = pairs[k];
    }
}

inline void rope(int64_t head_width, bool halves, const Real* cos_sin, Real sign, const Real* x, Real* y,
                 bool accumulate) {
    int64_t half = head_width / 2;
    each_vector(half, [&](int64_t i, int64_t some) {
        rope_vector(halves, half, cos_sin, set1(sign), x, y, i, some, accumulate);
    });
}

inline void quantize_stored(int64_t n, DType type, const Real* source, const Real* importance, void* target) {
    AllBlockTypes::with(type, [&](auto block) {
        using Block = decltype(block);
        char* to = static_cast<char*>(target);
        for (int64_t i = 0; i < n; i += Block::elements, to += Block::bytes)
            Block::quantize(source + i, importance ? importance + i : nullptr, to);
    });
}

inline void store_stored(int64_t n, DType type, const Real* source, void* target) {
    with_stored(type, [&](auto stored) {
        using Stored = decltype(stored);
        typename Stored::Element* to = static_cast<typename Stored::Element*>(target);
        each_vector(n,
                    [&](int64_t i, int64_t some) { Stored::put_n(to + i, load_n(source + i, some), some); });
    });
}

}  // namespace
}  // namespace linnet
