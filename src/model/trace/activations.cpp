// What a config calls the activations.

#include <stdexcept>

#include "model/trace/trace.h"

#include "base/split.h"

namespace linnet {
namespace {

struct ActivationName {
    std::string_view name;
    Activation kind;
};
constexpr ActivationName activations[] = {
    {"relu", Activation::relu},           {"relu2", Activation::relu2}, {"gelu", Activation::gelu},
    {"gelu-tanh", Activation::gelu_tanh}, {"silu", Activation::silu},
};

}  // namespace

Activation activation_from_name(std::string_view name) {
    for (const ActivationName& a : activations)
        if (a.name == name) return a.kind;
    throw std::logic_error("an activation without a row in the table");
}

std::vector<std::string> activation_names() {
    return names_of(activations);
}

}  // namespace linnet
