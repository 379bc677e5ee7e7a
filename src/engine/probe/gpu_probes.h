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
#include "spec/names.h"
#include "telemetry/sensor_summary.h"
#include "text/fields.h"

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

struct DeviceMeasured {
  double fastest_seconds = 0, median_seconds = 0;  // of one repetition, by windows
  double relative_noise = 0;
  int64_t windows = 0;
  EndedBy ended_by = EndedBy::time;
  bool slowed = false;

  static constexpr auto fields() {
    using M = DeviceMeasured;
    return field_list(
        field("fastest_seconds", &M::fastest_seconds, "one repetition in the fastest window"),
        field("median_seconds", &M::median_seconds, "one repetition in the median window"),
        field("relative_noise", &M::relative_noise, "1.4826 x median absolute deviation / median of the windows"),
        field("windows", &M::windows, "windows measured"),
        field("ended_by", &M::ended_by, "noise: the windows agreed; time: the time limit came first"),
        field("slowed", &M::slowed, "the second half was over 5 % slower than the first: throttled or disturbed"));
  }
};

// Repeats `work`, which gives the device something to do. The windows hold as many repetitions as fill them.
DeviceMeasured measure_on_device(Accelerator& device, const MeasuringRule& rule, const std::function<void()>& work);

struct GpuRate {
  std::string name;
  ProductPass pass = ProductPass::forward;
  int64_t m = 0, n = 0, k = 0;
  double flops_per_second = 0;
  DeviceMeasured measured;

  static constexpr auto fields() {
    using G = GpuRate;
    return field_list(
        field("name", &G::name, "name of the product"),
        field("pass", &G::pass, "forward, or the gradient of the input (dgrad) or of the weights (wgrad)"),
        field("m", &G::m, "rows of the left matrix and the result"),
        field("n", &G::n, "columns of the right matrix and the result"),
        field("k", &G::k, "columns of the left matrix, rows of the right one"),
        field("flops_per_second", &G::flops_per_second, "2·m·n·k per product, in the median window"),
        field("measured", &G::measured, "the measurement"));
  }
};

// How the GPU was while one number format was measured. What its library does not say is absent.
struct GpuConditions {
  std::optional<double> clock_hz, power_watts, temperature_celsius;

  static constexpr auto fields() {
    using G = GpuConditions;
    return field_list(field("clock_hz", &G::clock_hz, "mean clock"),
                      field("power_watts", &G::power_watts, "mean power"),
                      field("temperature_celsius", &G::temperature_celsius, "mean temperature"));
  }
};

struct GpuPeak {
  Precision precision = Precision::bf16;
  double flops_per_second = 0;                   // of the fastest product
  std::optional<double> catalogue_flops;         // dense peak of this part and format
  std::optional<double> model_flops_per_second;  // all of a model's products of a step together
  GpuConditions conditions;
  std::vector<GpuRate> products;
  std::optional<std::vector<GroupedRate<DeviceMeasured>>> grouped;  // of routed experts

  static constexpr auto fields() {
    using G = GpuPeak;
    return field_list(
        field("precision", &G::precision, "number format of the inputs"),
        field("flops_per_second", &G::flops_per_second, "of the fastest product"),
        field("catalogue_flops", &G::catalogue_flops, "dense peak from the hardware catalogue; absent: unknown"),
        field("model_flops_per_second", &G::model_flops_per_second,
              "aggregate rate of all products in a step of the "
              "model"),
        field("conditions", &G::conditions, "GPU state during the measurement"),
        field("products", &G::products, "rate of each product"),
        field("grouped", &G::grouped, "rate of the routed experts' products; absent: a dense model, or no kernels"));
  }
};

struct GpuTransferRate {
  std::string kind;  // "copy", "add": in the GPU's memory; "upload", "download": as a training's
  double bytes_per_second = 0;
  DeviceMeasured measured;

  static constexpr auto fields() {
    using G = GpuTransferRate;
    return field_list(
        field("kind", &G::kind,
              "copy: c = a; add: c = a + b, both in GPU memory; upload, download: between host and GPU memory, as in "
              "training"),
        field("bytes_per_second", &G::bytes_per_second, "read and written, in the median window"),
        field("measured", &G::measured, "the measurement"));
  }
};

// What each of many small operations costs.
struct GpuLaunch {
  double given_seconds = 0;     // of the host, for giving one to the GPU
  double done_seconds = 0;      // from one to the next on the GPU
  double recorded_seconds = 0;  // the same where the GPU was told once and repeats them

  static constexpr auto fields() {
    using G = GpuLaunch;
    return field_list(field("given_seconds", &G::given_seconds, "host time to launch one operation"),
                      field("done_seconds", &G::done_seconds, "GPU time from one operation to the next"),
                      field("recorded_seconds", &G::recorded_seconds, "the same for operations replayed from a graph"));
  }
};

struct GpuProbeReport {
  std::string gpu;                   // as the driver names it
  std::optional<std::string> part;   // of the hardware catalogue
  std::optional<std::string> model;  // whose products these are
  std::optional<int64_t> tokens;
  std::vector<GpuPeak> matmul;
  std::vector<Precision> no_kernels;
  std::optional<double> catalogue_bandwidth;
  std::vector<GpuTransferRate> memory;
  std::optional<GpuLaunch> launch;

  static constexpr auto fields() {
    using G = GpuProbeReport;
    return field_list(
        field("gpu", &G::gpu, "name reported by its driver"), field("part", &G::part, "in the hardware catalogue"),
        field("model", &G::model, "model of these products; absent: generic shapes"),
        field("tokens", &G::tokens, "tokens of a micro-batch, MBS x SL"),
        field("matmul", &G::matmul, "achievable matrix-product rate by number format"),
        field("no_kernels", &G::no_kernels, "number formats without kernels on this GPU"),
        field("catalogue_bandwidth", &G::catalogue_bandwidth, "memory bandwidth from the hardware catalogue, bytes/s"),
        field("memory", &G::memory, "achievable bandwidths"), field("launch", &G::launch, "cost of a small operation"));
  }
};

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
