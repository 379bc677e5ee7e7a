#include "probe/gpu_probes.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "device/parallel.h"

namespace tprimat::engine {
namespace {

// The processor in a GPU's place: what is measured are its own operations.
class ProcessorEvent : public DeviceEvent {
 public:
  void record() override { time_ = SteadyClock::now(); }
  double seconds_since(const DeviceEvent& earlier) const override {
    return std::chrono::duration<double>(time_ - dynamic_cast<const ProcessorEvent&>(earlier).time_).count();
  }

 private:
  SteadyClock::time_point time_;
};

class ProcessorWork : public RecordedWork {
 public:
  explicit ProcessorWork(std::function<void()> work) : work_(std::move(work)) {}
  void replay() override { work_(); }

 private:
  std::function<void()> work_;
};

class ProcessorAsGpu : public Accelerator {
 public:
  explicit ProcessorAsGpu(std::string name) : name_(std::move(name)) {}
  ~ProcessorAsGpu() override { EXPECT_EQ(taken_, 0); }
  std::string name() const override { return name_; }
  bool is_host() const override { return false; }
  std::optional<double> free_bytes() const override { return std::nullopt; }
  std::byte* allocate(size_t bytes) override {
    ++taken_;
    return static_cast<std::byte*>(std::calloc(bytes, 1));
  }
  void release(std::byte* memory, size_t) override {
    --taken_;
    std::free(memory);
  }
  void upload(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void finish() override {}
  std::unique_ptr<DeviceEvent> make_event() override {
    ++events_;
    return std::make_unique<ProcessorEvent>();
  }
  int64_t events() const { return events_; }  // made so far
  std::unique_ptr<RecordedWork> record(const std::function<void()>& work) override {
    return std::make_unique<ProcessorWork>(work);
  }

 private:
  std::string name_;
  int taken_ = 0;
  int64_t events_ = 0;
};

class ScriptedWatch : public GpuWatch {
 public:
  void begin() override { ++begun; }
  GpuConditions end() override { return {1e9 * begun, std::nullopt, std::nullopt}; }
  int begun = 0;
};

// What the operations of 8 bits were asked for.
struct Fp8Calls {
  std::vector<Fp8Product<bf16>> narrow;
  std::vector<Fp8Product<float>> wide;
  std::vector<Fp8Quantize<bf16>> quantized;
};
Fp8Calls& fp8_calls() {
  static Fp8Calls calls;
  return calls;
}

OpTable<bf16> ops_with_fp8() {
  fp8_calls() = {};
  OpTable<bf16> ops = cpu_ops<bf16>();
  ops.fp8_quantize = [](const Fp8Quantize<bf16>& call) { fp8_calls().quantized.push_back(call); };
  ops.fp8_matmul = [](const Fp8Product<bf16>& call) { fp8_calls().narrow.push_back(call); };
  ops.fp8_matmul_wide = [](const Fp8Product<float>& call) { fp8_calls().wide.push_back(call); };
  return ops;
}

[[noreturn]] void refuse_f16(const MatrixView<const f16>&, const MatrixView<const f16>&, const MatrixView<f16>&, bool) {
  throw Error(Problem{"no kernel", "", ""});
}

class GpuProbes : public testing::Test {
 protected:
  GpuProbePlan small_plan() const {
    using enum ProductPass;
    GpuProbePlan plan;
    plan.products = {{{"up", forward, 16, 48, 32}, 2}, {{"up", dgrad, 16, 32, 48}, 2}, {{"up", wgrad, 32, 48, 16}, 2}};
    plan.rule = {.warm_seconds = 1e-4, .window_seconds = 1e-4, .longest_seconds = 1e-3, .least_windows = 4};
    plan.memory_bytes = 1 << 16;
    return plan;
  }
  GpuProbeReport run(const std::string& name, const GpuProbePlan& plan) {
    set_thread_count(1);
    ProcessorAsGpu device(name);
    return run_gpu_probes({&device, &cpu_ops<float>(), &bf16_ops_, &f16_ops_, &settings_}, plan, watch_);
  }
  ProductSettings settings_;
  ScriptedWatch watch_;
  OpTable<bf16> bf16_ops_ = cpu_ops<bf16>();
  OpTable<f16> f16_ops_ = cpu_ops<f16>();
};

TEST_F(GpuProbes, MeasuresEveryFormatThatTheDeviceMultiplies) {
  const GpuProbeReport report = run("NVIDIA H100 80GB HBM3", small_plan());
  ASSERT_EQ(report.matmul.size(), 4u);
  EXPECT_EQ(report.no_kernels, std::vector<Precision>{Precision::fp8});  // the processor's table has none
  for (const GpuPeak& peak : report.matmul) {
    ASSERT_EQ(peak.products.size(), 3u);
    for (const GpuRate& rate : peak.products) {
      EXPECT_GT(rate.flops_per_second, 0);
      EXPECT_LE(rate.flops_per_second, peak.flops_per_second);
      EXPECT_GE(rate.measured.windows, 4);
      EXPECT_LE(rate.measured.fastest_seconds, rate.measured.median_seconds);
    }
    ASSERT_TRUE(peak.model_flops_per_second);
    EXPECT_LE(*peak.model_flops_per_second, peak.flops_per_second);
  }
  EXPECT_FALSE(settings_.tf32);  // as it was
}

// What a profile's "of peak" means on a GPU: the GPU's own rate in the training's format, not a processor's.
TEST_F(GpuProbes, APeakIsThatOfTheDeviceAndTheFormat) {
  set_thread_count(1);
  ProcessorAsGpu device("NVIDIA H100 80GB HBM3");
  const GpuMachine machine{&device, &cpu_ops<float>(), &bf16_ops_, &f16_ops_, &settings_};
  const int64_t before = device.events();
  EXPECT_GT(measure_gpu_peak(machine, small_plan(), Precision::bf16).value_or(0.0), 0.0);
  EXPECT_GT(device.events(), before);
  EXPECT_EQ(measure_gpu_peak(machine, small_plan(), Precision::fp8), std::nullopt);
}

TEST_F(GpuProbes, TheCatalogueKnowsThePart) {
  const GpuProbeReport known = run("NVIDIA H100 80GB HBM3", small_plan()), unknown = run("a GPU of 2031", small_plan());
  EXPECT_EQ(known.part, "H100-SXM-80GB");
  EXPECT_EQ(known.matmul[2].precision, Precision::bf16);
  EXPECT_EQ(known.matmul[2].catalogue_flops, 989e12);
  EXPECT_GT(known.catalogue_bandwidth.value_or(0), 3e12);
  EXPECT_FALSE(unknown.part || unknown.catalogue_bandwidth || unknown.matmul[2].catalogue_flops);
}

TEST_F(GpuProbes, EachFormatHasTheConditionsOfItsOwnTime) {
  const GpuProbeReport report = run("a GPU", small_plan());
  EXPECT_EQ(watch_.begun, 5);
  EXPECT_EQ(report.matmul[0].conditions.clock_hz, 1e9);
  EXPECT_EQ(report.matmul[3].conditions.clock_hz, 4e9);
  EXPECT_FALSE(report.matmul[0].conditions.power_watts);
}

TEST_F(GpuProbes, MeasuresMemoryTransfersAndLaunches) {
  const GpuProbeReport report = run("a GPU", small_plan());
  std::vector<std::string> kinds;
  for (const GpuTransferRate& rate : report.memory) {
    kinds.push_back(rate.kind);
    EXPECT_GT(rate.bytes_per_second, 0);
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"copy", "add", "upload", "download"}));
  ASSERT_TRUE(report.launch);
  EXPECT_GT(report.launch->given_seconds, 0);
  EXPECT_GT(report.launch->done_seconds, 0);
  EXPECT_GT(report.launch->recorded_seconds, 0);
  GpuProbePlan plan = small_plan();
  plan.measures_memory = false;
  EXPECT_TRUE(run("a GPU", plan).memory.empty());
}

TEST_F(GpuProbes, AFormatWithoutKernelsIsNamedAndTheOthersGoOn) {
  f16_ops_.matmul = &refuse_f16;
  const GpuProbeReport report = run("a GPU", small_plan());
  EXPECT_EQ(report.no_kernels, (std::vector<Precision>{Precision::fp16, Precision::fp8}));
  EXPECT_EQ(report.matmul.size(), 3u);
}

TEST_F(GpuProbes, RoutedExpertsAreMeasuredTogether) {
  GpuProbePlan plan = small_plan();
  plan.measures_memory = false;
  EXPECT_FALSE(run("a GPU", plan).matmul.front().grouped);
  using enum ProductPass;
  for (const ProductPass pass : {forward, dgrad, wgrad})
    plan.groups.push_back({{"expert_up", pass, 4, 16, 32, 48}, 1e6});
  const GpuProbeReport report = run("a GPU", plan);
  ASSERT_EQ(report.matmul.size(), 4u);
  for (const GpuPeak& peak : report.matmul) {
    ASSERT_TRUE(peak.grouped && peak.grouped->size() == 6);
    for (const GroupedRate<DeviceMeasured>& each : *peak.grouped) {
      EXPECT_EQ(each.fullest, each.load == ExpertLoad::even ? 16 : 32);
      EXPECT_GT(each.flops_per_second, 0);
      EXPECT_GT(each.share_of_plain, 0);
      EXPECT_GE(each.measured.windows, 4);
    }
    EXPECT_TRUE(peak.model_flops_per_second);
  }
}

// A rate of all products that left the experts out would be another figure under the same name.
TEST_F(GpuProbes, ExpertsWithoutKernelsLeaveNoRateOfAll) {
  bf16_ops_.matmul_wide = [](const auto&, const auto&, const auto&, bool) {
    throw Error(Problem{"no kernel", "", ""});
  };
  GpuProbePlan plan = small_plan();
  plan.measures_memory = false;
  plan.products.pop_back();  // the wgrad
  plan.groups = {{{"expert_up", ProductPass::wgrad, 4, 16, 32, 48}, 1e6}};
  const GpuProbeReport report = run("a GPU", plan);
  ASSERT_EQ(report.matmul.size(), 4u);
  EXPECT_TRUE(report.matmul[0].grouped && report.matmul[0].model_flops_per_second);
  EXPECT_FALSE(report.matmul[2].grouped || report.matmul[2].model_flops_per_second);
}

// As Transformer Engine's recipe has it: gradients are E5M2, and only the forward pass adds up in the units' own sums.
TEST_F(GpuProbes, ProductsOf8BitsAreThoseOfATraining) {
  bf16_ops_ = ops_with_fp8();
  const GpuProbeReport report = run("a GPU", small_plan());
  EXPECT_EQ(report.matmul.size(), 5u);
  ASSERT_FALSE(fp8_calls().narrow.empty());
  ASSERT_FALSE(fp8_calls().wide.empty());
  const Fp8Product<bf16>&forward = fp8_calls().narrow.front(), &dgrad = fp8_calls().narrow.back();
  EXPECT_TRUE(forward.fast_sums && forward.a.format == Fp8Format::e4m3 && forward.b.format == Fp8Format::e4m3);
  EXPECT_TRUE(forward.a.rows == 16 && forward.b.rows == 48 && forward.a.cols == 32 && forward.b.cols == 32);
  EXPECT_TRUE(!dgrad.fast_sums && dgrad.a.format == Fp8Format::e5m2 && dgrad.c.cols == 32 && dgrad.a.cols == 48);
  const Fp8Product<float>& wgrad = fp8_calls().wide.front();
  EXPECT_TRUE(wgrad.accumulate && !wgrad.fast_sums && wgrad.a.format == Fp8Format::e5m2 && wgrad.a.cols == 16);
  EXPECT_NE(fp8_calls().narrow[0].a.data, fp8_calls().narrow[1].a.data);  // inputs change from call to call
}

TEST(GpuProbePlan, AModelsProductsAreWholeOnAGpu) {
  const GpuProbePlan plan = standard_gpu_plan();
  EXPECT_GE(plan.products.size(), 4u);
  ModelSpec model;
  model.num_layers = 2;
  model.hidden_size = 4096;
  model.num_attention_heads = model.num_key_value_heads = 32;
  model.head_dim = 128;
  model.ffn_hidden_size = 14336;
  model.vocab_size = 32768;
  EXPECT_EQ(model_products(model, 8192, k_any_product_flops).front().shape.m, 8192);
  EXPECT_LT(model_products(model, 8192).front().shape.m, 8192);
}

}  // namespace
}  // namespace tprimat::engine
