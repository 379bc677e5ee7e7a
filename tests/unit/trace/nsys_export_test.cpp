#include "trace/nsys_export.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sqlite_fixture.h"

namespace tprimat::logs {
namespace {

// As the 2024 versions export it, with fewer columns. Thread 1 of process 100: its serial number.
constexpr const char* k_schema = R"(
  CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
  CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT);
  CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, uuid TEXT);
  CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, "end" INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL);
  CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, "end" INTEGER, deviceId INTEGER, streamId INTEGER,
    correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER);
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, "end" INTEGER, eventClass INTEGER, globalTid INTEGER,
    correlationId INTEGER, nameId INTEGER);
  CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, "end" INTEGER, eventType INTEGER NOT NULL, text TEXT,
    globalTid INTEGER, textId INTEGER);
  INSERT INTO StringIds VALUES (1, 'void gemm<float>(float*)'), (2, 'gemm'), (3, 'cudaLaunchKernel_v7000'),
    (4, 'step 7'), (5, 'cudaMemcpyAsync_v3020'), (6, 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)'),
    (7, 'ncclDevKernel_Generic(x)');
  INSERT INTO TARGET_INFO_GPU VALUES (0, 3, 'NVIDIA H100 80GB HBM3');
  INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3, 0, 100, 'GPU-1');
  INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '', '');
)";
constexpr int64_t k_process = int64_t{100} << 24, k_thread = k_process + 101;

std::string report(const std::string& rows) { return sqlite_of(std::string(k_schema) + rows); }

std::string one_step() {
  return report(fmt::format(
      R"(INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 1500, 0, 1, 7, 11, {0}, 1, 2),
           (1600, 1900, 0, 1, 20, 12, {0}, 7, 7), (2000, 1999, 0, 1, 7, 13, {0}, 1, 2),
           (2000, 2100, 0, 1, 20, 14, {0}, 6, 6);
         INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (900, 950, 0, 7, 10, {0}, 4096, 1);
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (800, 850, 0, {1}, 10, 5), (860, 880, 0, {1}, 11, 3),
           (1550, 1560, 0, {1}, 12, 3);
         INSERT INTO NVTX_EVENTS VALUES (790, 2500, 59, NULL, {1}, 4), (855, 1540, 59, 'forward', {1}, NULL),
           (857, 1500, 59, 'aten::mm, seq = 4, op_id = 9, sizes = [[2, 3], [3, 4]]', {1}, NULL),
           (1545, 1570, 59, 'ncclAllGather', {1}, NULL), (1, NULL, 34, 'a moment', {1}, NULL),
           (2, 3, 75, 'a domain', {1}, NULL);)",
      k_process, k_thread));
}

std::string refusal(std::string_view bytes) {
  try {
    read_nsys_export(bytes, "r.sqlite", TraceContent::everything);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(NsysExport, ReadsWorkCallsRangesAndWhoLaunchedWhat) {
  const Trace trace = read_nsys_export(one_step(), "r.sqlite", TraceContent::everything);
  ASSERT_EQ(trace.events.size(), 4u);
  EXPECT_EQ(trace.unusable_events, 1);  // it ends before it begins
  const GpuEvent &gemm = trace.events[0], &generic = trace.events[1], &copy = trace.events[3];
  EXPECT_EQ(gemm.span, (Span{1000, 1500}));
  EXPECT_EQ(trace.names[gemm.name], "void gemm<float>(float*)");
  EXPECT_EQ(gemm.device, 3);
  EXPECT_EQ(gemm.stream, 7);
  EXPECT_EQ(gemm.launched, 880);
  ASSERT_NE(gemm.launcher, k_none);
  const HostEvent& product = trace.host_events[gemm.launcher];
  EXPECT_EQ(trace.names[product.name], "aten::mm");
  EXPECT_EQ(product.kind, HostEventKind::operation);
  EXPECT_EQ(trace.shapes.at(product.shapes), "[2,3] [3,4]");
  EXPECT_EQ(trace.collectives.at(generic.collective).operation, "all_gather");  // its name does not tell
  EXPECT_EQ(trace.collectives.at(trace.events[2].collective).operation, "all_reduce");
  EXPECT_EQ(trace.events[2].launched, -1);
  EXPECT_EQ(copy.kind, GpuEventKind::memory_copy);
  EXPECT_EQ(trace.names[copy.name], "Memcpy HtoD");
  EXPECT_EQ(copy.launcher, k_none);
  EXPECT_EQ(copy.launched, 850);
  ASSERT_EQ(trace.marks.size(), 1u);
  EXPECT_EQ(trace.marks[0].step, 7);
  EXPECT_EQ(trace.marks[0].span, (Span{790, 2500}));
  EXPECT_EQ(trace.device_names, (std::map<int64_t, std::string>{{3, "NVIDIA H100 80GB HBM3"}}));
  EXPECT_EQ(trace.base_unix_nanoseconds, 1700000000000000000);
}

TEST(NsysExport, KeepsWhatTheContentAsksFor) {
  const Trace gpu = read_nsys_export(one_step(), "r.sqlite", TraceContent::gpu);
  EXPECT_EQ(gpu.events.size(), 4u);
  EXPECT_TRUE(gpu.host_events.empty());
  EXPECT_EQ(gpu.marks.size(), 1u);
  const Trace host = read_nsys_export(one_step(), "r.sqlite", TraceContent::host);
  ASSERT_EQ(host.host_events.size(), 1u);
  EXPECT_EQ(host.names[host.host_events[0].name], "aten::mm");
}

// Columns and tables come and go with the versions.
TEST(NsysExport, ReadsReportsOfOtherVersions) {
  const Trace old = read_nsys_export(sqlite_of(R"(CREATE TABLE StringIds (id INTEGER, value TEXT);
                   CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, "end" INTEGER, deviceId INTEGER,
                     streamId INTEGER, correlationId INTEGER, shortName INTEGER);
                   CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, "end" INTEGER, globalTid INTEGER,
                     correlationId INTEGER, nameId INTEGER);
                   INSERT INTO StringIds VALUES (1, 'gemm');
                   INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 7, 5, 1);
                   INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 281474976710656, 5, 1);)"),
                                     "r.sqlite", TraceContent::everything);
  ASSERT_EQ(old.events.size(), 1u);
  EXPECT_EQ(old.names[old.events[0].name], "gemm");
  EXPECT_EQ(old.events[0].launched, 2);
  const Trace graphs = read_nsys_export(
      sqlite_of(R"(CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, "end" INTEGER, deviceId INTEGER);
                   INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (10, 20, 0), (30, 40, 0);)"),
      "r.sqlite", TraceContent::gpu);
  EXPECT_EQ(graphs.events.size(), 2u);
  EXPECT_NE(graphs.notes.at(0).find("2 CUDA graphs"), std::string::npos);
}

// CUDA's numbers of the GPUs can differ from their own, here as on a node of Perlmutter.
TEST(NsysExport, NamesGpusByTheNumbersOfCuda) {
  const Trace trace = read_nsys_export(
      sqlite_of(R"(CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT, cuDevice INTEGER);
                   INSERT INTO TARGET_INFO_GPU VALUES (1, 0, 'A100 of 80 GB', 3), (1, 3, 'A100 of 40 GB', 0);
                   CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, "end" INTEGER, deviceId INTEGER);
                   INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0);)"),
      "r.sqlite", TraceContent::gpu);
  EXPECT_EQ(trace.events.at(0).device, 0);
  EXPECT_EQ(trace.device_names.at(0), "A100 of 40 GB");
}

// As several ranks of a machine: each sees its own GPU as the first, and numbers its calls from 1.
std::string two_processes() {
  const int64_t second = int64_t{200} << 24;
  return report(fmt::format(
      R"(INSERT INTO TARGET_INFO_GPU VALUES (0, 4, 'NVIDIA H100 80GB HBM3');
         INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (4, 0, 200, 'GPU-2');
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 1, 7, 11, {0}, 1, 2),
           (30, 40, 0, 1, 7, 11, {1}, 1, 2);
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 0, {0}, 11, 3), (3, 4, 0, {1}, 11, 3);
         INSERT INTO NVTX_EVENTS VALUES (0, 50, 59, 'step', {0}, NULL), (0, 60, 59, NULL, {1}, 4);)",
      k_process, second));
}

TEST(NsysExport, KeepsProcessesApart) {
  const Trace trace = read_nsys_export(two_processes(), "r.sqlite", TraceContent::everything);
  ASSERT_EQ(trace.events.size(), 2u);
  EXPECT_EQ(trace.events[0].device, 3);
  EXPECT_EQ(trace.events[1].device, 4);
  EXPECT_EQ(trace.events[0].launched, 2);
  EXPECT_EQ(trace.events[1].launched, 4);
  ASSERT_EQ(trace.marks.size(), 1u);  // of the first
  EXPECT_EQ(trace.marks[0].step, 0);
  EXPECT_NE(trace.notes.at(0).find("2 processes used a GPU"), std::string::npos);
}

TEST(NsysExport, ReadsEachProcessAlone) {
  const auto traces = read_nsys_processes(two_processes(), "r.sqlite", TraceContent::everything);
  ASSERT_EQ(traces.size(), 2u);
  EXPECT_EQ(traces[1].events.at(0).device, 4);
  EXPECT_EQ(traces[1].events[0].launched, 4);
  EXPECT_EQ(traces[1].marks.at(0).step, 7);
  EXPECT_TRUE(traces[1].notes.empty());
  EXPECT_EQ(read_nsys_processes(one_step(), "r.sqlite", TraceContent::gpu).size(), 1u);
}

// Each process takes a pass over the report: thousands would take minutes.
TEST(NsysExport, RefusesThousandsOfProcesses) {
  std::string rows;
  for (int64_t process = 1; process <= 2000; ++process)
    rows += fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 1, 0, 1, 7, 1, {}, 1, 2);", process << 24);
  try {
    read_nsys_processes(report(rows), "r.sqlite", TraceContent::everything);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string_view(error.what()).find("2000 processes that used a GPU"), std::string_view::npos)
        << error.what();
  }
}

TEST(NsysExport, TrustsNoBytes) {
  EXPECT_NE(refusal(sqlite_of("CREATE TABLE a (b)")).find("no report of Nsight Systems"), std::string::npos);
  EXPECT_NE(refusal(sqlite_of("CREATE TABLE rocpd_string_1 (id, string)")).find("rocpd convert"), std::string::npos);
  EXPECT_NE(refusal(one_step().substr(0, 5000)).find("cannot be read"), std::string::npos);
  std::string damaged = one_step();
  for (size_t at = 4096; at < damaged.size(); at += 7) damaged[at] = '\xff';
  EXPECT_NE(refusal(damaged).find("r.sqlite"), std::string::npos);
  // A view is no table of a report, and a value that is computed may not be.
  const char* const view = R"(CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i AS "end" FROM n;)";
  EXPECT_NE(refusal(sqlite_of(view)).find("no report"), std::string::npos);
  const char* const computed = R"(CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER,
    "end" INTEGER AS (length(zeroblob(1000000000)))); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1);)";
  EXPECT_NE(refusal(sqlite_of(computed)).find("cannot be read"), std::string::npos);
}

}  // namespace
}  // namespace tprimat::logs
