// The arithmetic of an optimizer's step.
#pragma once
#include <cstdint>

namespace linnet {

/// How an optimizer makes its update u of d, the gradient times gradient_scale, plus l2 · p.
enum class UpdateRule : std::uint8_t {
    adam,  // m ← β1·m + (1-β1)·d, v ← β2·v + (1-β2)·d²; u = rectified · m̂ / (√v̂ + ε); rectified 0: m̂
    momentum,  // m ← β1·m + d; u = m, with nesterov d + β1·m; where m is null: d
    lion,      // u = sign(β1·m + (1-β1)·d); m ← β2·m + (1-β2)·d
};

/// One step: p ← p - lr · (u + weight_decay · p) (decoupled decay: Loshchilov & Hutter 2019).
struct Update {
    UpdateRule rule = UpdateRule::adam;
    float lr = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
    float correction1 = 1, correction2 = 1;  // m̂ = m / correction1, v̂ = v / correction2
    float gradient_scale = 1;                // from clipping
    float l2 = 0, rectified = 1;
    bool nesterov = false;
    bool cautious = false;  // decays only where u and p have the same sign (Chen et al. 2025)
};

/// p, m, v [n] updated in place from g; m and v are null where the rule has none.
void update_parameters(std::int64_t n, const Update& update, const float* g, float* p, float* m, float* v);

}  // namespace linnet
