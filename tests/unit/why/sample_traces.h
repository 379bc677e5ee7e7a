#pragma once

#include <map>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace tprimat::results {

// An operation of a step as a test describes it; times in ns.
struct SampleOperation {
  std::string operation = "aten::mm", kernel = "gemm_128x128", shapes = "[512,256] [256,1024]";
  int64_t device = 100'000;  // of the kernel
  int64_t host = 5'000;      // of the operation until its kernel is launched
  int64_t before = 0;        // of the host before the operation
  std::string during = "";   // annotation over `before`
  logs::Phase phase = logs::Phase::forward;
};
using SampleStep = std::vector<SampleOperation>;

// A trace of a program that launches a step's operations on one GPU queue and waits for them at the step's end. Without
// a GPU the operations take `device` themselves.
class SampleTrace {
 public:
  explicit SampleTrace(bool on_gpu = true) : on_gpu_(on_gpu) {}

  SampleTrace& add(const SampleStep& step) {
    const int64_t begin = now_;
    for (const SampleOperation& each : step) run(each);
    if (on_gpu_) wait();
    trace.marks.push_back({++steps_, std::nullopt, {begin, now_}});
    return *this;
  }

  logs::Trace trace;

 private:
  uint32_t name(const std::string& text) {
    const auto [place, is_new] = names_.try_emplace(text, static_cast<uint32_t>(trace.names.size()));
    if (is_new) trace.names.push_back(text);
    return place->second;
  }

  uint32_t shapes(const std::string& text) {
    if (text.empty()) return logs::k_none;
    const auto [place, is_new] = shapes_.try_emplace(text, static_cast<uint32_t>(trace.shapes.size()));
    if (is_new) trace.shapes.push_back(text);
    return place->second;
  }

  uint32_t collective(const std::string& operation) {
    if (trace.collectives.empty()) trace.collectives.push_back({operation, "dp", 1 << 20, 2});
    return 0;
  }

  void host_event(const logs::Span& span, const std::string& what, logs::HostEventKind kind, logs::Phase phase,
                  const std::string& its_shapes = "") {
    logs::HostEvent event;
    event.span = span, event.name = name(what), event.kind = kind, event.phase = phase;
    event.shapes = shapes(its_shapes);
    if (what.starts_with("c10d::")) event.collective = collective(what);
    trace.host_events.push_back(event);
  }

  void run(const SampleOperation& each) {
    if (each.before > 0 && !each.during.empty())
      host_event({now_, now_ + each.before}, each.during, logs::HostEventKind::annotation, logs::Phase::data);
    now_ += each.before;
    const int64_t length = on_gpu_ ? each.host : each.device;
    host_event({now_, now_ + length}, each.operation, logs::HostEventKind::operation, each.phase, each.shapes);
    now_ += length;
    if (!on_gpu_) return;
    logs::GpuEvent event;
    const int64_t begin = std::max(now_ + 1'000, device_free_);
    event.span = {begin, begin + each.device}, event.name = name(each.kernel), event.stream = 7;
    event.launcher = static_cast<uint32_t>(trace.host_events.size() - 1), event.launched = now_;
    event.collective = trace.host_events.back().collective;
    trace.events.push_back(event);
    device_free_ = event.span.end;
  }

  void wait() {
    const int64_t end = std::max(now_, device_free_) + 2'000;
    host_event({now_, end}, "cudaDeviceSynchronize", logs::HostEventKind::runtime, logs::Phase::unknown);
    now_ = end;
  }

  bool on_gpu_;
  int64_t now_ = 1'000'000, device_free_ = 0, steps_ = 0;
  std::map<std::string, uint32_t> names_, shapes_;
};

// A Transformer's layer in short: two products, attention, a norm, an element-wise operation, an all-reduce and the
// optimizer.
inline SampleStep sample_step() {
  using logs::Phase;
  return {{},
          {"aten::_scaled_dot_product_flash_attention", "flash_fwd_kernel", "[4,8,128,64] [4,8,128,64]", 80'000},
          {"aten::addmm", "gemm_128x128", "[256] [512,1024] [1024,256]", 150'000},
          {"aten::layer_norm", "layer_norm_kernel", "[512,256]", 30'000},
          {"aten::mul", "vectorized_elementwise_kernel", "[512,1024]", 40'000},
          {"aten::mm", "gemm_128x64", "[1024,512] [512,256]", 120'000, 5'000, 0, "", Phase::backward},
          {"c10d::allreduce_", "ncclDevKernel_AllReduce_Sum_bf16", "[262144]", 60'000, 5'000, 0, "", Phase::backward},
          {"aten::_fused_adam_", "multi_tensor_apply_kernel", "[262144]", 50'000, 5'000, 0, "", Phase::optimizer}};
}

inline logs::Trace sample_trace(const SampleStep& step, int steps = 3, bool on_gpu = true) {
  SampleTrace sample(on_gpu);
  for (int i = 0; i < steps; ++i) sample.add(step);
  return sample.trace;
}

}  // namespace tprimat::results
