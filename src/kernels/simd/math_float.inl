// exp and the normal distribution for vectors of float.
#pragma once

namespace linnet {
namespace {

/// e^x within 2 ulp for all x, NaN kept: x = n·ln 2 + r, |r| <= ln 2 / 2, ln 2 in two pieces (Cody & Waite
/// 1980), a degree-7 polynomial in r (coefficients of Cephes' expf). Below -104 it is 0, above 88.8 infinity.
inline Vec exp(Vec x) {
    x = min(set1(88.8f), max(set1(-104.0f), x));
    Vec n = round(x * set1(1.44269504f));
    Vec r = fnma(n, set1(-2.12194440e-4f), fnma(n, set1(0.693359375f), x));
    Vec p = set1(1.9875691500e-4f);
    p = fma(p, r, set1(1.3981999507e-3f));
    p = fma(p, r, set1(8.3334519073e-3f));
    p = fma(p, r, set1(4.1665795894e-2f));
    p = fma(p, r, set1(1.6666665459e-1f));
    p = fma(p, r, set1(5.0000001201e-1f));
    p = fma(p, r * r, r) + set1(1.0f);
    return scale2(p, n);
}

/// The standard normal's distribution function (absolute error 2e-7) and density: Abramowitz & Stegun 7.1.26
/// for erfc, whose e^(-x²/2) is the density too.
inline void normal(Vec x, Vec& cdf, Vec& pdf) {
    Vec e = exp(x * x * set1(-0.5f));
    Vec t = set1(1.0f) / fma(abs(x), set1(0.3275911f * 0.70710678f), set1(1.0f));
    Vec p = set1(1.061405429f);
    p = fma(p, t, set1(-1.453152027f));
    p = fma(p, t, set1(1.421413741f));
    p = fma(p, t, set1(-0.284496736f));
    p = fma(p, t, set1(0.254829592f));
    Vec tail = set1(0.5f) * p * t * e;
    cdf = if_positive(x, set1(1.0f) - tail, tail);
    pdf = set1(0.39894228f) * e;
}

}  // namespace
}  // namespace linnet
