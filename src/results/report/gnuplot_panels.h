#pragma once

#include <string>

#include "compare/comparison.h"

namespace tprimat::results {

// Where a panel lies on the canvas, in gnuplot's screen coordinates (0..1, from below).
struct Frame {
  double left = 0, bottom = 0, width = 1, height = 1;
};

// Each returns the gnuplot commands of one panel, data included. A series that no run recorded says so in its panel.
std::string plot_throughput(const ModelGroup& group, const Frame& frame);
std::string plot_step_times(const ModelGroup& group, const Frame& frame);
std::string plot_losses(const ModelGroup& group, const Frame& frame);
std::string plot_memory(const ModelGroup& group, const Frame& frame);
std::string plot_learning_rates(const ModelGroup& group, const Frame& frame);
std::string plot_legend(const ModelGroup& group, const Frame& frame);  // colours, names and configuration of the runs

// For gnuplot: in single quotes, where it knows neither escapes nor substitution.
std::string quote_gnuplot(const std::string& text);

}  // namespace tprimat::results
