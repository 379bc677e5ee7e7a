#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/accelerator.h"
#include "ops/op_table.h"
#include "ops/product_settings.h"
#include "probe/device_bytes.h"
#include "probe/product.h"
#include "spec/names.h"

namespace tprimat::engine {

// A GPU and its operations, as a training has them.
struct GpuMachine {
  Accelerator* device = nullptr;
  const OpTable<float>* f32_ops = nullptr;
  const OpTable<bf16>* bf16_ops = nullptr;
  const OpTable<f16>* f16_ops = nullptr;
  ProductSettings* products = nullptr;
};

// One product on a GPU, ready to repeat, through the training's own operations: inputs as a training has them in
// memory, in normal random numbers; they change from call to call, so that none finds them in a cache. The results are
// of the inputs' format, those of wgrad are added to floats; fp8's are bf16, its operands quantised beforehand.
class GpuProduct {
 public:
  virtual ~GpuProduct() = default;
  virtual void run() = 0;
};

// Nothing for fp8 where the device has no units for it. The tf32 of GpuMachine::products is set by this. Throws Error
// where memory runs out, and by run() where the library has no kernel for it.
std::unique_ptr<GpuProduct> make_gpu_product(const GpuMachine& machine, const ProductShape& shape, Precision precision);

}  // namespace tprimat::engine
