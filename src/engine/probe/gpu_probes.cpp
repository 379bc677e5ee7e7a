#include "probe/gpu_probes.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "spec/hardware_catalogue.h"
#include "telemetry/gpu_libraries.h"
#include "telemetry/sampler.h"
#include "telemetry/sensors.h"

namespace tprimat::engine {
namespace {

constexpr int k_small_operations = 1000;
constexpr int k_recorded_operations = 100;

double seconds_on_device(Accelerator& device, int64_t repetitions, const std::function<void()>& work) {
  const auto first = device.make_event(), last = device.make_event();
  first->record();
  for (int64_t i = 0; i < repetitions; ++i) work();
  last->record();
  return last->seconds_since(*first) / static_cast<double>(repetitions);
}

int64_t filling(double seconds, double one) {
  return std::max<int64_t>(1, static_cast<int64_t>(seconds / std::max(one, 1e-9)));
}

// Nothing where the GPU's library has no kernel for one of the products.
std::optional<std::vector<GpuRate>> measure_rates(const GpuMachine& machine, const GpuProbePlan& plan,
                                                  Precision precision) {
  std::vector<GpuRate> rates;
  for (const ModelProduct& entry : plan.products) {
    const ProductShape& shape = entry.shape;
    try {
      const auto product = make_gpu_product(machine, shape, precision);
      if (product == nullptr) return std::nullopt;
      const DeviceMeasured measured = measure_on_device(*machine.device, plan.rule, [&] { product->run(); });
      rates.push_back(
          {shape.name, shape.pass, shape.m, shape.n, shape.k, shape.flops() / measured.median_seconds, measured});
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  return rates;
}

// The products of several experts, one after the other.
TimedProducts<DeviceMeasured> time_together(const GpuMachine& machine, const GpuProbePlan& plan,
                                            const std::vector<ProductShape>& shapes, Precision precision) {
  std::vector<std::unique_ptr<GpuProduct>> products;
  for (const ProductShape& shape : shapes)
    products.push_back(make_gpu_product(machine, shape, precision, shapes.size() == 1));
  const DeviceMeasured measured = measure_on_device(*machine.device, plan.rule, [&] {
    for (const auto& product : products) product->run();
  });
  return {measured.median_seconds, measured};
}

// Nothing where the model has no experts, or the library no kernel for one of their products.
std::optional<std::vector<GroupedRate<DeviceMeasured>>> measure_groups(const GpuMachine& machine,
                                                                       const GpuProbePlan& plan, Precision precision) {
  if (plan.groups.empty()) return std::nullopt;
  std::vector<GroupedRate<DeviceMeasured>> rates;
  try {
    for (const ModelGroup& group : plan.groups)
      add_grouped_rates(rates, group.shape, [&](const std::vector<ProductShape>& shapes) {
        return time_together(machine, plan, shapes, precision);
      });
    return rates;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// All products of a step one after the other, each as often as the model has it; nothing where some were not measured.
std::optional<double> rate_together(const GpuProbePlan& plan, const GpuPeak& peak) {
  if (!plan.groups.empty() && !peak.grouped) return std::nullopt;
  double work = 0, time = 0;
  for (size_t i = 0; i < plan.products.size(); ++i) {
    const double flops = plan.products[i].shape.flops() * static_cast<double>(plan.products[i].count);
    work += flops;
    time += flops / peak.products[i].flops_per_second;
  }
  for (const ModelGroup& group : plan.groups) work += group.step_flops;
  if (peak.grouped) time += seconds_of_groups(plan.groups, *peak.grouped);
  return work / time;
}

GpuPeak make_peak(Precision precision, std::vector<GpuRate> rates, const std::optional<HardwareSpec>& part) {
  GpuPeak peak;
  peak.precision = precision;
  for (const GpuRate& rate : rates) peak.flops_per_second = std::max(peak.flops_per_second, rate.flops_per_second);
  peak.products = std::move(rates);
  if (!part) return peak;
  const auto found = part->dense_peak_flops.find(precision);
  if (found != part->dense_peak_flops.end()) peak.catalogue_flops = found->second;
  return peak;
}

GpuTransferRate measure_transfer(const GpuMachine& machine, const MeasuringRule& rule, std::string kind, double bytes,
                                 const std::function<void()>& work) {
  const DeviceMeasured measured = measure_on_device(*machine.device, rule, work);
  return {std::move(kind), bytes / measured.median_seconds, measured};
}

std::vector<GpuTransferRate> measure_memory(const GpuMachine& machine, const GpuProbePlan& plan) {
  const size_t size = plan.memory_bytes;
  const auto bytes = static_cast<double>(size);
  const auto count = static_cast<int64_t>(size / sizeof(float));
  Device& device = *machine.device;
  const DeviceBytes a(device, size), b(device, size), c(device, size);
  std::vector<std::byte> host(std::min(size, size_t{256} << 20));
  const auto host_bytes = static_cast<double>(host.size());
  const OpTable<float>& ops = *machine.f32_ops;
  return {measure_transfer(machine, plan.rule, "copy", 2 * bytes,
                           [&] {
                             ops.copy({a.as<void>(), c.as<void>(), 1, size, size, size});
                           }),
          measure_transfer(machine, plan.rule, "add", 3 * bytes,
                           [&] { ops.add(count, a.as<float>(), b.as<float>(), c.as<float>()); }),
          measure_transfer(machine, plan.rule, "upload", host_bytes,
                           [&] { device.upload(c.as<void>(), host.data(), host.size()); }),
          measure_transfer(machine, plan.rule, "download", host_bytes,
                           [&] { device.download(host.data(), c.as<void>(), host.size()); })};
}

GpuLaunch measure_launch(const GpuMachine& machine) {
  Accelerator& device = *machine.device;
  const DeviceBytes value(device, sizeof(float));
  const auto small = [&] { machine.f32_ops->add(1, value.as<float>(), value.as<float>(), value.as<float>()); };
  seconds_on_device(device, k_small_operations, small);
  GpuLaunch launch;
  const auto start = SteadyClock::now();
  for (int i = 0; i < k_small_operations; ++i) small();
  launch.given_seconds = seconds_since(start) / k_small_operations;
  launch.done_seconds = seconds_on_device(device, k_small_operations, small);
  const auto recorded = device.record([&] {
    for (int i = 0; i < k_recorded_operations; ++i) small();
  });
  const auto replay = [&] { recorded->replay(); };
  seconds_on_device(device, 2, replay);
  launch.recorded_seconds = seconds_on_device(device, 10, replay) / k_recorded_operations;
  return launch;
}

class LibraryWatch : public GpuWatch {
 public:
  LibraryWatch(Platform platform, int64_t index)
      : libraries_(open_gpu_libraries()), use_{platform, read_environment, index + 1}, index_(index) {}
  void begin() override {
    begin_ = unix_time_seconds();
    sampler_ = std::make_unique<Sampler>(open_sensors({::getpid(), 1, libraries_, use_}));
  }
  GpuConditions end() override {
    const TimeWindow window{begin_, unix_time_seconds()};
    int64_t gpus_before = 0;
    for (const SensorTrace& trace : std::exchange(sampler_, nullptr)->stop()) {
      const bool is_gpu = trace.source.find(':') != trace.source.npos && !trace.source.starts_with("proc");
      if (!is_gpu || gpus_before++ < index_) continue;
      const SensorSummary summary = summarise_readings(trace, window);
      return {summary.mean_clock_hz, summary.mean_power_watts, summary.mean_temperature_celsius};
    }
    return {};
  }

 private:
  std::vector<std::shared_ptr<const GpuLibrary>> libraries_;
  GpuUse use_;
  int64_t index_;
  double begin_ = 0;
  std::unique_ptr<Sampler> sampler_;
};

}  // namespace

DeviceMeasured measure_on_device(Accelerator& device, const MeasuringRule& rule, const std::function<void()>& work) {
  seconds_on_device(device, 1, work);  // loads kernels, chooses between them
  double one = seconds_on_device(device, 1, work);
  one = seconds_on_device(device, filling(rule.warm_seconds, one), work);
  const auto start = SteadyClock::now();
  const Measured measured = measure_windows(
      rule,
      [&] {
        return Window{seconds_on_device(device, filling(rule.window_seconds, one), work), 1};
      },
      [&] { return seconds_since(start); });
  return {measured.fastest_seconds, measured.median_seconds, measured.relative_noise,
          measured.windows,         measured.ended_by,       measured.slowed};
}

std::unique_ptr<GpuWatch> watch_gpu(Platform platform, int64_t index) {
  return std::make_unique<LibraryWatch>(platform, index);
}

GpuProbePlan standard_gpu_plan() {
  using enum ProductPass;
  GpuProbePlan plan;
  for (const ProductShape& shape :
       {ProductShape{"square", forward, 4096, 4096, 4096}, ProductShape{"square", forward, 8192, 8192, 8192},
        ProductShape{"up", forward, 8192, 28672, 4096}, ProductShape{"down", forward, 8192, 4096, 14336},
        ProductShape{"up", wgrad, 4096, 28672, 8192}, ProductShape{"head", forward, 8192, 32768, 4096}})
    plan.products.push_back({shape, 1});
  return plan;
}

GpuProbePlan brief_gpu_plan() {
  GpuProbePlan plan;
  plan.products = {{{"square", ProductPass::forward, 8192, 8192, 8192}, 1}};
  plan.rule = {.warm_seconds = 0.1, .window_seconds = 0.02, .longest_seconds = 0.5, .noise = 0.01, .least_windows = 8};
  return plan;
}

std::optional<double> measure_gpu_peak(const GpuMachine& machine, const GpuProbePlan& plan, Precision precision) {
  const auto rates = measure_rates(machine, plan, precision);
  machine.products->tf32 = false;
  return rates ? std::optional<double>(make_peak(precision, *rates, std::nullopt).flops_per_second) : std::nullopt;
}

GpuProbeReport run_gpu_probes(const GpuMachine& machine, const GpuProbePlan& plan, GpuWatch& watch) {
  GpuProbeReport report;
  report.gpu = machine.device->name();
  report.memory_bytes = machine.device->free_bytes();
  const auto part = find_hardware(report.gpu);
  if (part) {
    report.part = part->id;
    report.catalogue_bandwidth = part->memory_bandwidth;
  }
  for (const Precision precision :
       {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16, Precision::fp8}) {
    watch.begin();
    auto rates = measure_rates(machine, plan, precision);
    auto groups = rates ? measure_groups(machine, plan, precision) : std::nullopt;
    const GpuConditions conditions = watch.end();
    if (!rates) {
      report.no_kernels.push_back(precision);
      continue;
    }
    GpuPeak& peak = report.matmul.emplace_back(make_peak(precision, std::move(*rates), part));
    peak.conditions = conditions;
    peak.grouped = std::move(groups);
    peak.model_flops_per_second = rate_together(plan, peak);
  }
  machine.products->tf32 = false;
  if (!plan.measures_memory) return report;
  report.memory = measure_memory(machine, plan);
  report.launch = measure_launch(machine);
  return report;
}

}  // namespace tprimat::engine
