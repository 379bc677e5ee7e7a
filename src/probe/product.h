#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "text/enum_names.h"

namespace tprimat {

// Number format of a matrix product's inputs. Sums are kept in fp32 (int8: int32).
enum class ProductFormat { fp32, bf16, fp16, int8 };
template <>
struct EnumNames<ProductFormat> {
  static constexpr std::pair<ProductFormat, std::string_view> values[] = {{ProductFormat::fp32, "fp32"},
                                                                          {ProductFormat::bf16, "bf16"},
                                                                          {ProductFormat::fp16, "fp16"},
                                                                          {ProductFormat::int8, "int8"}};
};

// Which product of a linear layer y = x·W: x [tokens, inputs], W [inputs, outputs].
enum class ProductPass {
  forward,  // y  = x·W      m = tokens, n = outputs, k = inputs
  dgrad,    // dx = dy·Wᵀ    m = tokens, n = inputs,  k = outputs
  wgrad,    // dW = xᵀ·dy    m = inputs, n = outputs, k = tokens; x is stored as in forward, the result is fp32
};
template <>
struct EnumNames<ProductPass> {
  static constexpr std::pair<ProductPass, std::string_view> values[] = {
      {ProductPass::forward, "forward"}, {ProductPass::dgrad, "dgrad"}, {ProductPass::wgrad, "wgrad"}};
};

// [m, k] times [k, n].
struct ProductShape {
  std::string name;  // "square", "qkv"
  ProductPass pass = ProductPass::forward;
  int64_t m = 0, n = 0, k = 0;
  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

// One product in oneDNN, ready to repeat on normal random data. Weights lie in the layout that oneDNN likes best,
// packed beforehand; wgrad has no weights, so both of its inputs lie as a training has them.
class Product {
 public:
  virtual ~Product() = default;
  virtual void run() = 0;
};

// Nothing for a format that this CPU has no instructions for. Throws Error when memory runs out or oneDNN fails.
std::unique_ptr<Product> make_product(const ProductShape& shape, ProductFormat format);
bool has_instructions(ProductFormat format);

}  // namespace tprimat
