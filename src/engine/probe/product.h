#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "result/probe_report.h"

namespace tprimat::engine {

// [m, k] times [k, n].
struct ProductShape {
  std::string name;  // "square", "qkv"
  ProductPass pass = ProductPass::forward;
  int64_t m = 0, n = 0, k = 0;
  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

// A product ready to repeat on normal random data.
class Product {
 public:
  virtual ~Product() = default;
  virtual void run() = 0;
};

// In oneDNN: weights lie in the layout that oneDNN likes best, packed beforehand; wgrad has no weights, so both of its
// inputs lie as a training has them. Nothing for a format that this CPU has no instructions for. Throws Error when
// memory runs out or oneDNN fails.
std::unique_ptr<Product> make_product(const ProductShape& shape, ProductFormat format);
// As the trainer makes it, packing included, from operands that lie as a training has them. Nothing where that is
// oneDNN.
std::unique_ptr<Product> make_own_product(const ProductShape& shape, ProductFormat format);
bool has_instructions(ProductFormat format);

}  // namespace tprimat::engine
