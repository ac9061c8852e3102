// A forecast, to be read.
#pragma once
#include <string>

#include "train/forecast/forecast.h"

namespace linnet {

/// A JSON object per row, a line each.
std::string forecast_lines(const Forecast& forecast);

/// A table, with a mark at the best row.
std::string forecast_table(const Forecast& forecast);

}  // namespace linnet
