#include "probe/gemm_probe.h"

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "device/parallel.h"

namespace tprimat::engine {
namespace {

constexpr MeasuringRule k_gemm_rule;
constexpr MeasuringRule k_own_rule{.warm_seconds = 0.02, .window_seconds = 0.03, .longest_seconds = 0.15};
constexpr double k_warm_seconds = 0.2;  // before the first product: clocks rise

// Two squares, and the products of an MLP and a head of width 1024 over 2048 tokens.
std::vector<ProductShape> standard_shapes() {
  using enum ProductPass;
  return {{"square", forward, 1024, 1024, 1024},
          {"square", forward, 2048, 2048, 2048},
          {"up", forward, 2048, 4096, 1024},
          {"down", forward, 2048, 1024, 4096},
          {"head", forward, 2048, 8192, 1024}};
}

std::optional<ProductFormat> format_of(Precision precision) {
  switch (precision) {
    case Precision::fp32: return ProductFormat::fp32;
    case Precision::bf16: return ProductFormat::bf16;
    case Precision::fp16: return ProductFormat::fp16;
    default: return std::nullopt;
  }
}

bool is_slower(const GemmRate& a, const GemmRate& b) { return a.flops_per_second < b.flops_per_second; }

Measured measure_product(const MeasuringRule& rule, Product& product) {
  return measure(rule, thread_count(), [&] { product.run(); });
}

GemmRate rate_of(const ProductShape& shape, const Measured& measured) {
  return {shape.name, shape.pass, shape.m, shape.n, shape.k, shape.flops() / measured.fastest_seconds, measured};
}

// The trainer's own product takes the place of oneDNN's where it is faster, so that a training is not held against a
// slow peak.
struct MeasuredShape {
  GemmRate rate;
  bool is_own;
};
MeasuredShape measure_shape(const ProductShape& shape, ProductFormat format) {
  auto product = make_product(shape, format);
  CHECK(product != nullptr);
  const GemmRate rate = rate_of(shape, measure_product(k_gemm_rule, *product));
  product.reset();  // its memory is that of the next
  const auto own = make_own_product(shape, format);
  if (own == nullptr) return {rate, false};
  const GemmRate own_rate = rate_of(shape, measure_product(k_own_rule, *own));
  return is_slower(rate, own_rate) ? MeasuredShape{own_rate, true} : MeasuredShape{rate, false};
}

std::string describe_rule(size_t shapes, const MeasuredShape& best) {
  const dnnl_version_t* version = dnnl_version();
  const MeasuringRule& rule = best.is_own ? k_own_rule : k_gemm_rule;
  const std::string who =
      best.is_own ? "the native trainer's own product"
                  : fmt::format("oneDNN {}.{}.{} with packed weights", version->major, version->minor, version->patch);
  return fmt::format(
      "fastest window of {} s over {} shapes, reached at {} x {} x {}; each shape until the windows agree to {} % or "
      "for {} s; {}, normal data, {} threads",
      rule.window_seconds, shapes, best.rate.m, best.rate.n, best.rate.k, rule.noise * 100, rule.longest_seconds, who,
      thread_count());
}

TimedProducts<Measured> time_products(const std::vector<ProductShape>& shapes, ProductFormat format) {
  std::vector<std::unique_ptr<Product>> products;
  for (const ProductShape& shape : shapes) products.push_back(make_product(shape, format));
  const Measured measured = measure(k_gemm_rule, thread_count(), [&] {
    for (const auto& product : products) product->run();
  });
  return {measured.fastest_seconds, measured};
}

std::vector<GroupedRate<Measured>> measure_groups(const std::vector<ModelGroup>& groups, ProductFormat format) {
  std::vector<GroupedRate<Measured>> rates;
  for (const ModelGroup& group : groups)
    add_grouped_rates(rates, group.shape,
                      [&](const std::vector<ProductShape>& shapes) { return time_products(shapes, format); });
  return rates;
}

}  // namespace

std::optional<GemmPeak> measure_products(const std::vector<ProductShape>& shapes, ProductFormat format, int threads) {
  CHECK(!shapes.empty());
  if (!has_instructions(format)) return std::nullopt;
  set_thread_count(threads);
  const auto warm = make_product(standard_shapes().front(), format);
  measure_window(k_warm_seconds, thread_count(), [&] { warm->run(); });
  GemmPeak peak;
  peak.precision = format;
  std::optional<MeasuredShape> best;
  for (const ProductShape& shape : shapes) {
    const MeasuredShape measured = measure_shape(shape, format);
    if (!best || is_slower(best->rate, measured.rate)) best = measured;
    peak.shapes.push_back(measured.rate);
  }
  peak.flops_per_second = best->rate.flops_per_second;
  peak.cpu_share = best->rate.measured.cpu_share;
  peak.how = describe_rule(shapes.size(), *best);
  return peak;
}

std::optional<GemmPeak> measure_gemm_peak(ProductFormat format, int threads) {
  return measure_products(standard_shapes(), format, threads);
}

std::optional<GemmPeak> measure_gemm_peak(Precision precision, int threads) {
  const auto format = format_of(precision);
  if (!format) return std::nullopt;
  if (has_instructions(*format)) return measure_gemm_peak(*format, threads);
  std::optional<GemmPeak> peak = measure_gemm_peak(ProductFormat::fp32, threads);
  peak->how += fmt::format("; in fp32, to which this processor widens {}", enum_name(precision));
  return peak;
}

std::optional<ModelRate> measure_model_products(const ModelSpec& model, int64_t tokens, ProductFormat format,
                                                int threads) {
  const std::vector<ModelProduct> products = model_products(model, tokens);
  std::vector<ProductShape> shapes;
  for (const ModelProduct& product : products) shapes.push_back(product.shape);
  auto measured = measure_products(shapes, format, threads);
  if (!measured) return std::nullopt;
  // Per token of a step every product does the same work as its forward, whatever number of rows was measured.
  double work = 0, time = 0;
  for (size_t i = 0; i < products.size(); ++i) {
    const auto& shape = products[i].shape;
    const int64_t rows = shape.pass == ProductPass::wgrad ? shape.k : shape.m;
    const double flops = shape.flops() / static_cast<double>(rows) * static_cast<double>(products[i].count);
    work += flops;
    time += flops / measured->shapes[i].flops_per_second;
  }
  ModelRate rate{model.name, tokens, std::move(*measured), std::nullopt, 0};
  if (model.experts) {
    const std::vector<ModelGroup> groups = expert_products(model, tokens);
    rate.grouped = measure_groups(groups, format);
    // As the others: per token.
    for (const ModelGroup& group : groups) work += group.step_flops / static_cast<double>(tokens);
    time += seconds_of_groups(groups, *rate.grouped) / static_cast<double>(tokens);
  }
  rate.flops_per_second = work / time;
  return rate;
}

}  // namespace tprimat::engine
