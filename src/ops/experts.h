// The operations of a mixture of experts (experts.cpp and router_loss.cpp say what each does).
#pragma once
#include "ops/op.h"

namespace linnet {

extern const Op expert_choice_op, expert_weights_op, expert_places_op, expert_bounds_op, to_experts_op,
    expert_linear_op, from_experts_op, row_gate_op, router_loss_op;

}  // namespace linnet
