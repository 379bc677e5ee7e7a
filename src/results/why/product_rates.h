#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/json.h"

namespace tprimat::results {

struct StepWork;

// What a matrix product of some size reaches by itself.
struct ProductRate {
  std::string format = {};     // "bf16"; empty: any
  double multiplications = 0;  // m·n·k; 0: of any size
  double flops_per_second = 0;
};

// From the report of `tprimat probe --json`, of a processor or a GPU. Throws Error where it holds no products.
std::vector<ProductRate> product_rates(const Json& probe, std::string_view where);

// The rate of the measured product whose size is nearest; nothing for a format that was not measured. An empty format
// is any.
std::optional<double> nearest_rate(std::span<const ProductRate> rates, std::string_view format, double multiplications);

// The number format of a product: "[8192,4096] [4096,4096] bf16" -> "bf16"; empty: not stated.
std::string_view product_format(std::string_view shapes);

// Of the products whose size and format were measured: the time that they would take at the measured rates, over
// theirs. Nothing where these take less than half of the time of all products.
std::optional<double> share_of_rates(const StepWork& work, std::span<const ProductRate> rates);

}  // namespace tprimat::results
