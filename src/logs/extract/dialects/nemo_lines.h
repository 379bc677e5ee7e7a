#pragma once

#include <string_view>
#include <vector>

#include "extract/log_builder.h"
#include "extract/log_line.h"

// Lines that NeMo 1 and NeMo 2 share: start-up facts, figures of few digits.
namespace tprimat::logs {

// Anchors of the lines that read_nemo_line knows.
std::vector<std::string_view> nemo_line_anchors();

// Layout, steps and warm-up. The devices and the optimizer's configuration are read by the common readers.
void read_nemo_line(const LogLine& line, LogBuilder& log);

// Sets the printed time of a step that was rounded to so many significant digits, trailing zeros cut.
void set_rounded_time(ExtractedStep& step, Figure seconds, int significant_digits);

// Half a unit of the n-th significant digit: 0.05 for 49.5 and three digits.
double half_of_digit(double value, int significant_digits);

}  // namespace tprimat::logs
