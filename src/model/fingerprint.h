// Which model it is, told without reading all of it.
#pragma once
#include <string>

#include "model/model.h"

namespace linnet {

/// The SHA-256, in hexadecimal, of what decides a model's logits: its config, and of every parameter the
/// name, the type, the shape and the bytes (of a long one some at its beginning, middle and end: training
/// moves all weights of a tensor). Takes milliseconds.
std::string fingerprint(const Model& model);

}  // namespace linnet
