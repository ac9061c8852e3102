#include "train/optimize/rules.h"

#include <cmath>

#include "kernels/kernels.h"

namespace linnet {
namespace {

/// p ← p - lr · (u + decay · p) with u = make(i, d). Written so that a compiler can use vectors.
template <class Make>
void each_element(std::int64_t n, const Update& o, const float* g, float* p, Make make) {
    const float lr = o.lr, decay = o.weight_decay, scale = o.gradient_scale, l2 = o.l2;
    const float against = o.cautious ? 0.0f : decay;  // where u and p differ in sign
#pragma omp simd
    for (std::int64_t i = 0; i < n; i++) {
        const float u = make(i, g[i] * scale + l2 * p[i]);
        const float here = u * p[i] > 0 ? decay : against;
        p[i] -= lr * (u + here * p[i]);
    }
}

void adam(std::int64_t n, const Update& o, const float* g, float* p, float* m, float* v) {
    if (o.l2 == 0 && o.rectified == 1 && !o.cautious) {
        const AdamW<float> plain{o.lr,           o.beta1,       o.beta2,       o.epsilon,
                                 o.weight_decay, o.correction1, o.correction2, o.gradient_scale};
        return kernels().adamw(n, plain, g, p, m, v);
    }
    const float beta1 = o.beta1, beta2 = o.beta2, epsilon = o.epsilon, rectified = o.rectified;
    const float scale1 = 1 / o.correction1, scale2 = 1 / o.correction2;
    auto moments = [=](std::int64_t i, float d) {
        m[i] = beta1 * m[i] + (1 - beta1) * d;
        v[i] = beta2 * v[i] + (1 - beta2) * d * d;
    };
    if (rectified == 0)
        return each_element(n, o, g, p, [=](std::int64_t i, float d) {
            moments(i, d);
            return m[i] * scale1;
        });
    each_element(n, o, g, p, [=](std::int64_t i, float d) {
        moments(i, d);
        return rectified * (m[i] * scale1) / (std::sqrt(v[i] * scale2) + epsilon);
    });
}

void momentum(std::int64_t n, const Update& o, const float* g, float* p, float* m) {
    if (!m) return each_element(n, o, g, p, [](std::int64_t, float d) { return d; });
    const float beta = o.beta1;
    const bool nesterov = o.nesterov;
    each_element(n, o, g, p, [=](std::int64_t i, float d) {
        m[i] = beta * m[i] + d;
        return nesterov ? d + beta * m[i] : m[i];
    });
}

void lion(std::int64_t n, const Update& o, const float* g, float* p, float* m) {
    const float beta1 = o.beta1, beta2 = o.beta2;
    each_element(n, o, g, p, [=](std::int64_t i, float d) {
        const float mean = beta1 * m[i] + (1 - beta1) * d;
        m[i] = beta2 * m[i] + (1 - beta2) * d;
        return mean > 0 ? 1.0f : mean < 0 ? -1.0f : 0.0f;
    });
}

}  // namespace

void update_parameters(std::int64_t n, const Update& o, const float* g, float* p, float* m, float* v) {
    switch (o.rule) {
        case UpdateRule::adam:
            return adam(n, o, g, p, m, v);
        case UpdateRule::momentum:
            return momentum(n, o, g, p, m);
        case UpdateRule::lion:
            return lion(n, o, g, p, m);
    }
}

}  // namespace linnet
