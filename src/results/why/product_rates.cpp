#include "why/product_rates.h"

#include <cmath>

#include "base/error.h"
#include "text/words.h"
#include "why/work_rows.h"

namespace tprimat::results {
namespace {

constexpr double k_same_size = 2;  // products of half and of twice the size reach about the same rate

double number_at(const Json& object, std::string_view key) {
  const Json* const value = object.find(key);
  return value != nullptr && value->is_number() ? value->get<double>() : 0;
}

void add_products(const Json& format, std::vector<ProductRate>& rates) {
  const std::string name = format.text_at("precision");
  bool has_sizes = false;
  for (const std::string_view key : {"shapes", "products"}) {
    const Json* const products = format.find(key);
    if (products == nullptr || !products->is_array()) continue;
    for (const Json& product : *products) {
      const double size = number_at(product, "m") * number_at(product, "n") * number_at(product, "k");
      const double rate = number_at(product, "flops_per_second");
      if (!(size > 0 && rate > 0)) continue;
      rates.push_back({name, size, rate});
      has_sizes = true;
    }
  }
  const double best = number_at(format, "flops_per_second");
  if (!has_sizes && best > 0) rates.push_back({name, 0, best});
}

// Those of about this size.
std::vector<ProductRate> rates_near(std::span<const ProductRate> rates, double multiplications) {
  std::vector<ProductRate> near;
  for (const ProductRate& rate : rates)
    if (rate.multiplications >= multiplications / k_same_size && rate.multiplications <= multiplications * k_same_size)
      near.push_back(rate);
  return near;
}

}  // namespace

std::vector<ProductRate> product_rates(const Json& probe, std::string_view where) {
  std::vector<ProductRate> rates;
  const Json* const formats = probe.find("matmul");
  if (formats != nullptr && formats->is_array())
    for (const Json& format : *formats) add_products(format, rates);
  if (rates.empty())
    throw Error(
        Problem{"states no rates of matrix products", std::string(where), "write it with tprimat probe --json"});
  return rates;
}

std::optional<double> nearest_rate(std::span<const ProductRate> rates, std::string_view format,
                                   double multiplications) {
  const ProductRate* nearest = nullptr;
  const auto distance = [&](const ProductRate& rate) {
    return rate.multiplications > 0 ? std::fabs(std::log(rate.multiplications / multiplications)) : 0;
  };
  for (const ProductRate& rate : rates) {
    if (!format.empty() && !rate.format.empty() && rate.format != format) continue;
    if (nearest == nullptr || distance(rate) < distance(*nearest)) nearest = &rate;
  }
  return nearest == nullptr ? std::nullopt : std::optional(nearest->flops_per_second);
}

std::string_view product_format(std::string_view shapes) {
  const std::string_view types = shapes.substr(shapes.rfind(']') + 1);
  return trim_blanks(types.substr(0, types.find(',')));
}

std::optional<double> share_of_rates(const StepWork& work, std::span<const ProductRate> rates) {
  double all = 0, known = 0, alone = 0;
  for (const WorkRow& row : work.rows) {
    if (row.key.kernel_class != logs::KernelClass::matmul) continue;
    all += row.mean_seconds();
    const std::string_view format = product_format(row.key.shapes);
    if (!(row.volume > 0 && row.calls > 0) || format.empty()) continue;
    const auto rate = nearest_rate(rates_near(rates, row.volume / row.calls), format, row.volume / row.calls);
    if (!rate) continue;
    known += row.mean_seconds(), alone += 2 * row.volume / *rate;
  }
  return known > 0 && 2 * known >= all ? std::optional(alone / known) : std::nullopt;
}

}  // namespace tprimat::results
