#include "trace/host_summary.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "trace/chrome_trace.h"
#include "trace/profile_summary.h"
#include "trace_fixture.h"

namespace tprimat::logs {
namespace {

std::string host_event(std::string_view name, double begin, double duration, int thread = 1) {
  return fmt::format(R"({{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 9, "tid": {}, "ts": {}, "dur": {}}})", name,
                     thread, begin, duration);
}

HostSummary summary_of(const std::vector<std::string>& events) {
  const std::string text = trace_of(events);
  return summarise_host(read_chrome_trace(text, "t.json", TraceContent::host)).value();
}

TEST(HostSummary, CountsAnOperationsOwnTime) {
  const HostSummary host = summary_of({host_event("aten::linear", 0, 100), host_event("aten::addmm", 10, 60),
                                       host_event("aten::copy_", 20, 10), host_event("aten::add", 120, 30),
                                       host_event("gloo:all_reduce", 110, 50, 2)});
  EXPECT_EQ(host.threads, 2);
  EXPECT_EQ(host.calls, 5);
  EXPECT_NEAR(host.span_seconds, 160e-6, 1e-12);
  EXPECT_NEAR(host.busy_seconds, 150e-6, 1e-12);
  ASSERT_EQ(host.operations.size(), 5u);
  EXPECT_EQ(host.operations[0].name, "aten::addmm");
  EXPECT_NEAR(host.operations[0].total_seconds, 50e-6, 1e-12);
  EXPECT_NEAR(host.operations[0].share, 50.0 / 180.0, 1e-12);
  EXPECT_EQ(host.classes[0].kernel_class, KernelClass::matmul);
  EXPECT_NEAR(host.classes[0].total_seconds, 90e-6, 1e-12);
  EXPECT_EQ(host.classes[1].kernel_class, KernelClass::collective);
}

TEST(HostSummary, OneThatBeginsAsAnotherEndsIsNotWithinIt) {
  const HostSummary host = summary_of({host_event("a", 0, 10), host_event("b", 10, 5), host_event("c", 10, 5)});
  EXPECT_NEAR(host.operations[0].total_seconds, 10e-6, 1e-12);
  EXPECT_NEAR(host.busy_seconds, 15e-6, 1e-12);
}

TEST(HostSummary, ReadsMarksAndStatedClasses) {
  const HostSummary host =
      summary_of({trace_event("user_annotation", "ProfilerStep#12", 100, 50),
                  trace_event("user_annotation", "ProfilerStep#11", 0, 100), host_event("aten::mm", 90, 20),
                  R"({"ph": "X", "cat": "cpu_op", "name": "attention.qkv", "tid": 1, "ts": 10, "dur": 80, )"
                  R"("args": {"class": "matmul"}})"});
  ASSERT_EQ(host.steps.size(), 2u);
  EXPECT_EQ(host.steps[0].step, 11);
  EXPECT_NEAR(host.steps[0].seconds, 100e-6, 1e-12);
  EXPECT_NEAR(host.steps[0].busy_seconds, 90e-6, 1e-12);
  EXPECT_NEAR(host.steps[1].busy_seconds, 10e-6, 1e-12);
  EXPECT_EQ(host.classes.size(), 1u);
}

TEST(HostSummary, IsMadeOnlyWhereNoGpuWorked) {
  const std::string both = trace_of({trace_event("kernel", "gemm", 0, 5), host_event("aten::mm", 0, 9)});
  EXPECT_FALSE(summarise_profile(both, "t.json").host.has_value());
  EXPECT_TRUE(read_chrome_trace(both, "t.json").host_events.empty());
  const ProfileSummary summary = summarise_profile(trace_of({host_event("aten::mm", 0, 9)}), "t.json");
  EXPECT_TRUE(summary.devices.empty());
  EXPECT_NE(render_profile(summary).find("processor, 1 thread, 1 operation"), std::string::npos);
  EXPECT_THROW(summarise_profile(trace_of({}), "t.json"), Error);
}

TEST(HostSummary, ClassesOfOperations) {
  for (const auto& [name, wanted] : {std::pair{"aten::bmm", KernelClass::matmul},
                                     {"aten::_scaled_dot_product_flash_attention_for_cpu", KernelClass::attention},
                                     {"aten::_to_copy", KernelClass::copy},
                                     {"aten::mul", KernelClass::elementwise},
                                     {"aten::_log_softmax", KernelClass::softmax},
                                     {"aten::_fused_adamw_", KernelClass::optimizer},
                                     {"aten::empty", KernelClass::other}})
    EXPECT_EQ(classify_operation(name), wanted) << name;
}

}  // namespace
}  // namespace tprimat::logs
