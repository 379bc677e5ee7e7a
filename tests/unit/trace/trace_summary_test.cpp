#include "trace/trace_summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "trace/chrome_trace.h"
#include "trace_fixture.h"

namespace tprimat::logs {
namespace {

std::vector<DeviceSummary> summarise(const std::vector<std::string>& events) {
  return summarise_trace(read_chrome_trace(trace_of(events), "t"), "t");
}

int64_t nanoseconds(const std::optional<double>& seconds) { return std::llround(seconds.value() * 1e9); }

// Microseconds:  0    10   20   30   40   50   60   70   80
//   gemm         [---------]
//   gemm (2)          [---------]
//   nccl                        [---------]        [----]
//   norm                             [----]
//   memcpy       [--]                          [---------]
TEST(TraceSummary, CountsEachMomentOnce) {
  const auto devices = summarise({
      trace_event("kernel", "gemm_a", 0, 20),
      trace_event("kernel", "gemm_b", 10, 20, 0, 8),
      trace_event("kernel", "ncclDevKernel_AllReduce", 30, 20, 0, 9),
      trace_event("kernel", "rmsnorm", 40, 10),
      trace_event("kernel", "ncclDevKernel_AllReduce", 70, 10, 0, 9),
      trace_event("gpu_memcpy", "Memcpy HtoD", 0, 5),
      trace_event("gpu_memcpy", "Memcpy DtoH", 60, 20),
  });
  ASSERT_EQ(devices.size(), 1u);
  const Timeline& timeline = devices[0].timeline;
  EXPECT_EQ(nanoseconds(timeline.span_seconds), 80000);
  EXPECT_EQ(nanoseconds(timeline.busy_seconds), 70000);
  EXPECT_EQ(nanoseconds(timeline.idle_seconds), 10000);
  EXPECT_EQ(nanoseconds(timeline.compute_seconds), 40000);
  EXPECT_EQ(nanoseconds(timeline.communication_seconds), 30000);
  EXPECT_EQ(nanoseconds(timeline.exposed_communication_seconds), 20000);
  EXPECT_EQ(nanoseconds(timeline.copy_seconds), 25000);
  EXPECT_EQ(nanoseconds(timeline.exposed_copy_seconds), 10000);
  EXPECT_EQ(devices[0].kernel_calls, 5);
  EXPECT_EQ(nanoseconds(devices[0].kernel_seconds), 80000);  // streams overlap
}

TEST(TraceSummary, TotalsByClassAndKernel) {
  const auto devices =
      summarise({trace_event("kernel", "gemm", 0, 30), trace_event("kernel", "gemm", 40, 30),
                 trace_event("kernel", "flash_fwd", 80, 25), trace_event("gpu_memset", "Memset", 200, 15)});
  const DeviceSummary& device = devices.at(0);
  ASSERT_EQ(device.classes.size(), 3u);
  EXPECT_EQ(device.classes[0].kernel_class, KernelClass::matmul);
  EXPECT_EQ(device.classes[0].calls, 2);
  EXPECT_DOUBLE_EQ(device.classes[0].share, 0.6);
  EXPECT_EQ(device.classes[1].kernel_class, KernelClass::attention);
  EXPECT_EQ(device.classes[2].kernel_class, KernelClass::copy);
  ASSERT_EQ(device.kernels.size(), 3u);
  EXPECT_EQ(device.kernels[0].name, "gemm");
  EXPECT_EQ(device.kernels[0].calls, 2);
  EXPECT_DOUBLE_EQ(device.kernels[0].total_seconds, 60e-6);
}

TEST(TraceSummary, KeepsDevicesApart) {
  const auto devices = summarise({trace_event("kernel", "gemm", 0, 10, 1), trace_event("kernel", "gemm", 5, 20, 0)});
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].device, 0);
  EXPECT_EQ(nanoseconds(devices[0].timeline.span_seconds), 20000);
  EXPECT_EQ(nanoseconds(devices[1].timeline.span_seconds), 10000);
}

TEST(TraceSummary, CutsStepsAtTheirMarks) {
  const std::vector<std::string> events = {
      trace_event("kernel", "gemm", 0, 30), trace_event("kernel", "nccl", 25, 20, 0, 9),
      trace_event("kernel", "gemm", 50, 10), trace_event("user_annotation", "ProfilerStep#8", 40, 30, 4711),
      trace_event("user_annotation", "ProfilerStep#7", 0, 40, 4711)};
  const DeviceSummary host = summarise(events).at(0);
  EXPECT_EQ(host.step_marks, "host");
  ASSERT_EQ(host.steps.size(), 2u);
  EXPECT_EQ(host.steps[0].step, 7);
  EXPECT_EQ(nanoseconds(host.steps[0].timeline.span_seconds), 40000);
  EXPECT_EQ(nanoseconds(host.steps[0].timeline.compute_seconds), 30000);
  EXPECT_EQ(nanoseconds(host.steps[0].timeline.exposed_communication_seconds), 10000);
  EXPECT_EQ(nanoseconds(host.steps[0].timeline.idle_seconds), 0);
  EXPECT_EQ(nanoseconds(host.steps[1].timeline.communication_seconds), 5000);
  EXPECT_EQ(nanoseconds(host.steps[1].timeline.compute_seconds), 10000);
  EXPECT_EQ(nanoseconds(host.steps[1].timeline.idle_seconds), 15000);
  ASSERT_EQ(host.steps[1].classes.size(), 1u);  // the collective began in the step before
  auto marked = events;
  marked.push_back(trace_event("gpu_user_annotation", "ProfilerStep#7", 0, 60, 0));
  const DeviceSummary device = summarise(marked).at(0);
  EXPECT_EQ(device.step_marks, "device");
  ASSERT_EQ(device.steps.size(), 1u);
  EXPECT_EQ(nanoseconds(device.steps[0].timeline.busy_seconds), 55000);
}

TEST(TraceSummary, NamesADeviceOnlyWhereItIsSure) {
  const auto name_of = [](std::string_view properties) {
    const std::string text = fmt::format(R"({{"deviceProperties": [{}], "traceEvents": [{}]}})", properties,
                                         trace_event("kernel", "k", 0, 1, 2));
    return summarise_trace(read_chrome_trace(text, "t"), "t").at(0).name;
  };
  EXPECT_EQ(name_of(R"({"id": 2, "name": "B"}, {"id": 0, "name": "A"})"), "B");
  EXPECT_EQ(name_of(R"({"id": 0, "name": "A"}, {"id": 1, "name": "A"})"), "A");
  EXPECT_FALSE(name_of(R"({"id": 0, "name": "A"}, {"id": 1, "name": "B"})").has_value());
  EXPECT_FALSE(name_of("").has_value());
}

TEST(TraceSummary, RefusesTracesWithoutGpuWork) {
  try {
    summarise({trace_event("cpu_op", "aten::mm", 0, 1)});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("holds no GPU work among its 1 events"), std::string::npos);
  }
}

// The definitions of the header, moment by moment.
struct Reference {
  int64_t span = 0, busy = 0, compute = 0, communication = 0, exposed_communication = 0, copy = 0, exposed_copy = 0;
};
struct Drawn {
  int64_t begin, end;
  int kind;  // 0 compute, 1 collective, 2 copy
};
Reference count_moments(const std::vector<Drawn>& events) {
  int64_t first = 1000000, last = 0;
  for (const Drawn& event : events) first = std::min(first, event.begin), last = std::max(last, event.end);
  Reference sums;
  sums.span = last - first;
  for (int64_t at = first; at < last; ++at) {
    bool runs[3] = {};
    for (const Drawn& event : events) runs[event.kind] = runs[event.kind] || (event.begin <= at && at < event.end);
    sums.busy += runs[0] || runs[1] || runs[2];
    sums.compute += runs[0];
    sums.communication += runs[1];
    sums.exposed_communication += runs[1] && !runs[0];
    sums.copy += runs[2];
    sums.exposed_copy += runs[2] && !runs[0] && !runs[1];
  }
  return sums;
}

TEST(TraceSummary, AgreesWithCountingEveryNanosecond) {
  std::mt19937 random(11);
  const auto draw = [&](int64_t from, int64_t to) { return std::uniform_int_distribution<int64_t>(from, to)(random); };
  for (int round = 0; round < 200; ++round) {
    std::vector<Drawn> drawn;
    Trace trace;
    trace.names = {"gemm", "nccl", "Memcpy"};
    for (int64_t i = draw(1, 25); i > 0; --i) {
      const int64_t begin = draw(0, 300);
      drawn.push_back({begin, begin + draw(0, 60), static_cast<int>(draw(0, 2))});
      trace.events.push_back({{drawn.back().begin, drawn.back().end},
                              static_cast<uint32_t>(drawn.back().kind),
                              0,
                              drawn.back().kind == 2 ? GpuEventKind::memory_copy : GpuEventKind::kernel});
    }
    const Reference wanted = count_moments(drawn);
    const Timeline got = summarise_trace(trace, "t").at(0).timeline;
    EXPECT_EQ(nanoseconds(got.span_seconds), wanted.span);
    EXPECT_EQ(nanoseconds(got.busy_seconds), wanted.busy);
    EXPECT_EQ(nanoseconds(got.idle_seconds), wanted.span - wanted.busy);
    EXPECT_EQ(nanoseconds(got.compute_seconds), wanted.compute);
    EXPECT_EQ(nanoseconds(got.communication_seconds), wanted.communication);
    EXPECT_EQ(nanoseconds(got.exposed_communication_seconds), wanted.exposed_communication);
    EXPECT_EQ(nanoseconds(got.copy_seconds), wanted.copy);
    EXPECT_EQ(nanoseconds(got.exposed_copy_seconds), wanted.exposed_copy);
    EXPECT_EQ(wanted.compute + wanted.exposed_communication + wanted.exposed_copy + wanted.span - wanted.busy,
              wanted.span);
  }
}

}  // namespace
}  // namespace tprimat::logs
