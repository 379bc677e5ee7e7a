#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/accelerator.h"
#include "ops/op_table.h"
#include "ops/product_settings.h"
#include "probe/grouped_rate.h"
#include "probe/measuring.h"
#include "probe/model_products.h"
#include "probe/product.h"
#include "result/gpu_probe_report.h"
#include "spec/names.h"
#include "telemetry/sensor_summary.h"

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
// where memory runs out, and by run() where the library has no kernel for it. `alone`: nothing else runs between two
// calls; one of several products keeps its inputs, since the others' take the cache.
std::unique_ptr<GpuProduct> make_gpu_product(const GpuMachine& machine, const ProductShape& shape, Precision precision,
                                             bool alone = true);

// How one figure of a GPU is measured: as on a processor (measuring.h), by the GPU's own events; its rate is that of
// the median window, which a GPU sustains once its clock has gone down under the load.
inline constexpr MeasuringRule k_gpu_rule = {
    .warm_seconds = 0.3, .window_seconds = 0.05, .longest_seconds = 1.5, .noise = 0.01, .least_windows = 8};

// Repeats `work`, which gives the device something to do. The windows hold as many repetitions as fill them.
DeviceMeasured measure_on_device(Accelerator& device, const MeasuringRule& rule, const std::function<void()>& work);

// Reads the GPU's sensors from begin() to end().
class GpuWatch {
 public:
  virtual ~GpuWatch() = default;
  virtual void begin() = 0;
  virtual GpuConditions end() = 0;
};
// Of the GPU that this process calls number `index` (telemetry/gpu_libraries.h); finds nothing where no library sees
// it.
std::unique_ptr<GpuWatch> watch_gpu(Platform platform, int64_t index);

struct GpuProbePlan {
  std::vector<ModelProduct> products;
  std::vector<ModelGroup> groups;  // of routed experts
  MeasuringRule rule = k_gpu_rule;
  size_t memory_bytes = size_t{1} << 30;  // of each array that is walked through
  bool measures_memory = true;            // and transfers and launches
};
inline constexpr double k_any_product_flops = 1e18;  // no product of a model is cut for a GPU
inline constexpr GroupLimits k_gpu_group_limits = {k_any_product_flops, int64_t{1} << 30};  // 4 GiB in fp32
// Squares, and the products of an MLP and a head of width 4096 over 8192 tokens.
GpuProbePlan standard_gpu_plan();

// One large product, measured briefly: the peak to which the profile of a training is compared.
GpuProbePlan brief_gpu_plan();
// Rate of the fastest product of the plan in FLOP/s; nothing where the GPU or its library cannot multiply such numbers,
// or where memory is short.
std::optional<double> measure_gpu_peak(const GpuMachine& machine, const GpuProbePlan& plan, Precision precision);

GpuProbeReport run_gpu_probes(const GpuMachine& machine, const GpuProbePlan& plan, GpuWatch& watch);

}  // namespace tprimat::engine
