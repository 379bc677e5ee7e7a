#include "trace/chrome_trace.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "trace_fixture.h"

namespace tprimat::logs {
namespace {

std::string refusal(std::string_view bytes) {
  try {
    read_chrome_trace(bytes, "t.json");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ChromeTrace, KeepsGpuEventsAndTheirNamesOnce) {
  const Trace trace = read_chrome_trace(
      trace_of({trace_event("kernel", "gemm", 10.5, 2), trace_event("cpu_op", "aten::mm", 1, 50),
                trace_event("gpu_memcpy", "Memcpy HtoD", 13, 1, 3), trace_event("kernel", "gemm", 20, 0),
                trace_event("gpu_memset", "Memset (Device)", 30, 1),
                R"({"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python", "device": 5}})",
                R"({"ph": "s", "cat": "ac2g", "name": "ac2g", "pid": 0, "ts": 1})"}),
      "t.json");
  EXPECT_EQ(trace.all_events, 7);
  ASSERT_EQ(trace.events.size(), 4u);
  EXPECT_EQ(trace.names, (std::vector<std::string>{"gemm", "Memcpy HtoD", "Memset (Device)"}));
  EXPECT_EQ(trace.events[0].span, (Span{10500, 12500}));
  EXPECT_EQ(trace.events[0].kind, GpuEventKind::kernel);
  EXPECT_EQ(trace.events[0].device, 0);  // not 99, which stands deeper
  EXPECT_EQ(trace.events[1].device, 3);
  EXPECT_EQ(trace.events[1].kind, GpuEventKind::memory_copy);
  EXPECT_EQ(trace.events[2].name, 0u);
  EXPECT_EQ(trace.events[3].kind, GpuEventKind::memory_set);
}

TEST(ChromeTrace, ReadsTheFactsAroundTheEvents) {
  const Trace trace = read_chrome_trace(
      R"({"deviceProperties": [{"id": 0, "name": "GPU X", "numSms": 108}, {"id": 1, "name": "GPU Y"}],
          "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 16, "pg_config": [{"rank": 9}]},
          "traceEvents": [], "rank": 77})",
      "t.json");
  EXPECT_EQ(trace.device_names, (std::map<int64_t, std::string>{{0, "GPU X"}, {1, "GPU Y"}}));
  EXPECT_EQ(trace.rank, 3);
  EXPECT_EQ(trace.world_size, 16);
}

TEST(ChromeTrace, ReadsBareArraysAndFirstReleases) {
  const Trace trace = read_chrome_trace(
      R"json([{"ph": "X", "cat": "Kernel", "name": "k", "pid": 2, "tid": "stream 7", "ts": "1614800519473220", "dur": 4},
          {"ph": "X", "cat": "Memcpy", "name": "m", "pid": 2, "tid": "stream 7", "ts": 1614800519473230, "dur": 0,
           "args": {"bytes": 200, "memory bandwidth (GB/s)": inf, "occupancy": -nan, "x": N/A, "y": NaN, "z": -1.5E+3
}
}])json",
      "t.json");
  ASSERT_EQ(trace.events.size(), 2u);
  EXPECT_EQ(trace.events[0].span.begin, 1614800519473220000);
  EXPECT_EQ(trace.events[0].device, 2);
}

TEST(ChromeTrace, ReadsStepMarks) {
  const Trace trace = read_chrome_trace(trace_of({trace_event("user_annotation", "ProfilerStep#5", 0, 100, 4711),
                                                  trace_event("gpu_user_annotation", "ProfilerStep#5", 10, 80, 2),
                                                  trace_event("user_annotation", "Optimizer.step#SGD.step", 0, 1),
                                                  trace_event("user_annotation", "ProfilerStep#", 0, 1)}),
                                        "t.json");
  ASSERT_EQ(trace.marks.size(), 2u);
  EXPECT_FALSE(trace.marks[0].device.has_value());
  EXPECT_EQ(trace.marks[1].device, 2);
  EXPECT_EQ(trace.marks[1].step, 5);
  EXPECT_EQ(trace.marks[1].span, (Span{10000, 90000}));
}

TEST(ChromeTrace, ReadsGzipOfSeveralMembers) {
  const std::string text = trace_of({trace_event("kernel", "gemm", 10, 2)});
  const std::string gzip = gzip_bytes(text.substr(0, 60)) + gzip_bytes(text.substr(60));
  EXPECT_EQ(read_chrome_trace(gzip, "t.json.gz").events.size(), 1u);
  EXPECT_NE(refusal(gzip.substr(0, gzip.size() - 20)).find("the gzip data are truncated at byte"), std::string::npos);
  std::string broken = gzip;
  for (size_t i = 20; i < 40; ++i) broken[i] = static_cast<char>(~broken[i]);
  EXPECT_NE(refusal(broken).find("t.json: "), std::string::npos);
}

TEST(ChromeTrace, SaysWhereATraceIsBroken) {
  const std::string text = trace_of({trace_event("kernel", "gemm", 10, 2)});
  EXPECT_EQ(refusal(text.substr(0, 70)).find("t.json: is truncated: the JSON text ends at byte 70"), 0u);
  EXPECT_EQ(refusal("{\"traceEvents\": [}").find("t.json: is not valid JSON at byte 18: "), 0u);
  EXPECT_NE(refusal("").find("at byte 0"), std::string::npos);
  EXPECT_NE(refusal("[2024-01-01 00:00:00] iteration 1").find("is not valid JSON"), std::string::npos);
  EXPECT_NE(refusal("{\"log_history\": []}").find("it has no traceEvents"), std::string::npos);
  EXPECT_NE(refusal("17").find("it has no traceEvents"), std::string::npos);
}

TEST(ChromeTrace, CountsEventsItCannotUse) {
  const Trace trace = read_chrome_trace(
      R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "ts": 1},
                          {"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "ts": 1, "dur": -2},
                          {"ph": "X", "cat": "kernel", "name": "c", "pid": 0, "ts": 1e300, "dur": 2},
                          {"ph": "X", "cat": "kernel", "name": "d", "pid": "GPU", "ts": 1, "dur": 2},
                          {"ph": "X", "cat": "kernel", "name": "e", "pid": 0, "ts": nan, "dur": 2},
                          {"ph": "X", "cat": "kernel", "name": "f", "pid": 0, "ts": 2, "dur": 9}]})",
      "t.json");
  EXPECT_EQ(trace.unusable_events, 5);
  EXPECT_EQ(trace.events.size(), 1u);
}

TEST(ChromeTrace, ReplacesBytesThatJsonForbids) {
  const Trace trace = read_chrome_trace(trace_of({trace_event("kernel", "a\xff\xfe\x01z", 1, 2)}), "t.json");
  EXPECT_EQ(trace.names.at(0), "a?? z");
}

TEST(ChromeTrace, DoesNotHoldTextsWithoutEnd) {
  const std::string text = "{\"traceEvents\": [{\"name\": \"" + std::string(17 << 20, 'a');
  EXPECT_NE(refusal(text).find("more than 16 MiB"), std::string::npos);
  EXPECT_NE(refusal(gzip_bytes(text)).find("more than 16 MiB"), std::string::npos);
  for (const std::string_view filler : {" ", "[", "[],", "null,", "nan,"}) {
    std::string many = "{\"traceEvents\": [";
    while (many.size() < 17u << 20) many += filler;
    EXPECT_NE(refusal(many), "") << filler;
  }
}

TEST(ChromeTrace, SurvivesDeepNesting) {
  EXPECT_NE(refusal(std::string(1 << 20, '[')), "");
  EXPECT_NE(refusal("{\"traceEvents\": [" + std::string(1 << 20, '[')), "");
}

TEST(Microseconds, AreExact) {
  EXPECT_EQ(parse_microseconds("4203669603187.439"), 4203669603187439);
  EXPECT_EQ(parse_microseconds("1695835542514261"), 1695835542514261000);
  EXPECT_EQ(parse_microseconds("0.0006"), 1);
  EXPECT_EQ(parse_microseconds("2.9999"), 3000);
  EXPECT_EQ(parse_microseconds("-1.5"), -1500);
  EXPECT_EQ(parse_microseconds("1.5e3"), 1500000);
  for (const std::string_view wrong : {"", "-", "--1", "x", "1x", "1e99", "9223372036854775807", "1.2.3", "1 "})
    EXPECT_FALSE(parse_microseconds(wrong).has_value()) << wrong;
}

}  // namespace
}  // namespace tprimat::logs
