// --lora, of commands that run a model.
#pragma once
#include <vector>

#include "model/adapter.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace linnet {

/// --lora FILE or FILE=SCALE, as often as wanted: they add up.
CLI::Option* add_adapters(CLI::App& app, std::vector<AdapterChoice>& adapters);

}  // namespace linnet
