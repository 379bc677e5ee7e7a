#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/json.h"

namespace tprimat::results {

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

}  // namespace tprimat::results
