#include "trace/launches.h"

#include <gtest/gtest.h>

#include "trace/chrome_trace.h"
#include "trace/kineto_event.h"
#include "trace_fixture.h"

namespace tprimat::logs {
namespace {

std::string event(std::string_view category, std::string_view name, double begin, double duration,
                  std::string_view arguments, int thread = 1) {
  return fmt::format(
      R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 0, "tid": {}, "ts": {}, "dur": {}, "args": {{{}}}}})", category,
      name, thread, begin, duration, arguments);
}

Trace read(const std::vector<std::string>& events) {
  return read_chrome_trace(trace_of(events), "t", TraceContent::everything);
}

std::string launcher_of(const Trace& trace, size_t i) {
  const uint32_t launcher = trace.events.at(i).launcher;
  return launcher == k_none ? "" : trace.names[trace.host_events[launcher].name];
}

TEST(Launches, FindTheInnermostOperationOfTheLaunchingThread) {
  const Trace trace = read({event("kernel", "gemm", 50, 9, R"("device": 0, "stream": 7, "correlation": 11)"),
                            event("cpu_op", "aten::linear", 10, 20, ""), event("cpu_op", "aten::addmm", 12, 10, ""),
                            event("cpu_op", "aten::other", 12, 10, "", 2),
                            event("cuda_runtime", "cudaLaunchKernel", 14, 2, R"("correlation": 11)"),
                            event("cuda_runtime", "cudaLaunchKernel", 25, 1, R"("correlation": 12)"),
                            event("kernel", "fill", 60, 1, R"("device": 0, "stream": 8, "correlation": 12)"),
                            event("kernel", "lost", 70, 1, R"("device": 0, "stream": 8, "correlation": 99)")});
  EXPECT_EQ(launcher_of(trace, 0), "aten::addmm");
  EXPECT_EQ(trace.events[0].launched, 16'000);
  EXPECT_EQ(trace.events[0].stream, 7);
  EXPECT_EQ(launcher_of(trace, 1), "aten::linear");
  EXPECT_EQ(launcher_of(trace, 2), "");
  EXPECT_EQ(trace.events[2].launched, -1);
}

TEST(Launches, TakeTheOperationsNumberWhereNoCallIsRecorded) {
  const Trace trace = read({event("cpu_op", "aten::mm", 10, 20, R"("External id": 5)"),
                            event("cpu_op", "aten::no", 10, 20, R"("External id": 7)"),
                            event("kernel", "gemm", 50, 9, R"("device": 0, "External id": 5, "correlation": 6)"),
                            event("kernel", "gemm", 60, 9, R"("device": 0, "External id": 7, "correlation": 7)")});
  EXPECT_EQ(launcher_of(trace, 0), "aten::mm");
  EXPECT_EQ(launcher_of(trace, 1), "");  // this file repeats the correlation there
}

TEST(Launches, ReadTheFirstReleasesOfKineto) {
  const Trace trace = read_chrome_trace(
      R"([{"ph": "X", "cat": "Operator", "name": "aten::mm", "pid": 9, "tid": "9", "ts": 10, "dur": 9, "args":
           {"External id": 3, "Input dims": [[2, 3], [3, 4], []], "Input type": ["float", "float", ""]}},
          {"ph": "X", "cat": "Operator", "name": "Optimizer.step#SGD.step", "pid": 9, "tid": "9", "ts": 30, "dur": 9},
          {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": "9", "ts": 12, "dur": 3,
           "args": {"correlation": 4, "external id": 3}},
          {"ph": "X", "cat": "Kernel", "name": "sgemm", "pid": 0, "tid": "stream 7", "ts": 20, "dur": 5,
           "args": {"device": 0, "stream": 7, "correlation": 4, "external id": 3}}])",
      "t", TraceContent::everything);
  EXPECT_EQ(launcher_of(trace, 0), "aten::mm");
  EXPECT_EQ(trace.shapes.at(trace.host_events.at(0).shapes), "[2,3] [3,4] fp32");
  EXPECT_EQ(trace.host_events.at(1).kind, HostEventKind::annotation);
}

TEST(Launches, TellWhatCollectivesDo) {
  constexpr std::string_view k_arguments =
      R"("Collective name": "allreduce", "In msg nelems": 1000, "dtype": "BFloat16",
      "Group size": 8, "Process Group Name": "3", "Process Group Description": "dp")";
  const Trace trace = read({event("cpu_op", "record_param_comms", 10, 20, k_arguments),
                            event("cuda_runtime", "hipLaunchKernel", 14, 2, R"("correlation": 11)"),
                            event("kernel", "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", 50, 9,
                                  R"("device": 0, "correlation": 11)"),
                            event("kernel", "ncclKernel_AllGather_RING_LL_Sum_int8_t", 60, 9, R"("device": 0)"),
                            event("kernel", "gemm", 70, 9, R"("device": 0, "correlation": 11)")});
  const CollectiveCall wanted{"all_reduce", "dp", 2000, 8};
  EXPECT_EQ(trace.collectives.at(trace.events.at(0).collective), wanted);
  EXPECT_EQ(trace.collectives.at(trace.events.at(1).collective).operation, "all_gather");
  EXPECT_EQ(trace.events.at(2).collective, k_none);
}

TEST(Launches, ReadTheTraceOfOurOwnTrainer) {
  const Trace trace =
      read({event("cpu_op", "query", 10, 20,
                  R"("class": "matmul", "shapes": "[8,16] [16,4] bf16", "phase": "recompute", "layer": 3,
                                     "flops": 1024, "bytes": 96)")});
  const HostEvent& found = trace.host_events.at(0);
  EXPECT_EQ(trace.shapes.at(found.shapes), "[8,16] [16,4] bf16");
  EXPECT_EQ(found.phase, Phase::recompute);
  EXPECT_EQ(found.layer, 3);
  EXPECT_EQ(found.flops, 1024);
  EXPECT_EQ(found.bytes, 96);
  EXPECT_EQ(trace.stated_classes.at(found.name), "matmul");
}

TEST(Launches, KeepRuntimeAnnotationsAndPythonOnlyWhereAskedFor) {
  const std::string text =
      trace_of({event("cuda_runtime", "cudaDeviceSynchronize", 1, 2, ""), event("cpu_op", "a", 1, 2, ""),
                event("user_annotation", "attn(F)", 1, 2, ""), event("python_function", "f.py(1): g", 1, 2, "")});
  EXPECT_EQ(read_chrome_trace(text, "t", TraceContent::gpu).host_events.size(), 0u);
  EXPECT_EQ(read_chrome_trace(text, "t", TraceContent::host).host_events.size(), 1u);
  EXPECT_EQ(read_chrome_trace(text, "t", TraceContent::everything).host_events.size(), 4u);
}

TEST(Launches, KeepEveryEventOfAListByItself) {
  const std::string events = R"([{"name": "backward-compute", "cat": "backward-compute", "pid": 1, "tid": 4,
      "ts": 848671.67, "dur": 138679.68, "ph": "X", "args": {"step": 23, "mb_id": 0}},
      {"name": "recording", "cat": "Trace", "pid": 1, "tid": 4, "ts": 1, "dur": 2, "ph": "X"}])";
  Trace trace = read_chrome_trace(events, "t", TraceContent::everything);
  ASSERT_EQ(trace.host_events.size(), 1u);
  EXPECT_EQ(trace.host_events[0].span, (Span{848'671'670, 987'351'350}));
  find_phases(trace);
  EXPECT_EQ(trace.host_events[0].phase, Phase::backward);
  EXPECT_TRUE(
      read_chrome_trace("{\"traceEvents\": " + events + "}", "t", TraceContent::everything).host_events.empty());
}

TEST(Shapes, LeaveOutWhatHasNoDimensions) {
  EXPECT_EQ(describe_shapes("[[2048, 4096], [4096, 14336], []]", R"(["c10::BFloat16", "c10::BFloat16", "Scalar"])"),
            "[2048,4096] [4096,14336] bf16");
  EXPECT_EQ(describe_shapes("[[[3], [4, 5]], []]", R"([["float", "c10::Half"], ""])"), "[3] [4,5] fp32,fp16");
  EXPECT_EQ(describe_shapes("[[], []]", R"(["", "Scalar"])"), "");
  std::string many = "[[1000]";
  for (int i = 0; i < 500; ++i) many += ", [1000]";
  const std::string shown = describe_shapes(many + "]", R"(["float"])");
  EXPECT_LT(shown.size(), 300u);
  EXPECT_TRUE(shown.ends_with(" ...")) << shown;
}

}  // namespace
}  // namespace tprimat::logs
