// The ops of replaced tokens (sample.cpp).
#pragma once
#include "ops/op.h"

namespace linnet {

extern const Op sample_op, differ_op, insert_op;

}  // namespace linnet
