// The operations of a mixture of experts (experts.cpp says what each does).
#pragma once
#include "ops/op.h"

namespace linnet {

extern const Op expert_choice_op, expert_weights_op, expert_places_op, expert_bounds_op, to_experts_op,
    expert_linear_op, from_experts_op, row_gate_op;

}  // namespace linnet
