// --lora, of commands that run a model or change its weights.
#pragma once
#include <string>
#include <vector>

#include "model/adapter.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace linnet {

/// --lora FILE or FILE=SCALE, as often as wanted: they add up. `what` begins the help.
CLI::Option* add_adapters(CLI::App& app, std::vector<AdapterChoice>& adapters,
                          const std::string& what = "adapter to run beside the weights");

}  // namespace linnet
