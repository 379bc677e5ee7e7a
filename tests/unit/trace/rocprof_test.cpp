#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "example_data.h"
#include "text/proto.h"
#include "trace/intervals.h"
#include "trace/perfetto_trace.h"
#include "trace/rocprof_csv.h"
#include "trace/trace_format.h"
#include "trace_fixture.h"

namespace tprimat::logs {
namespace {

constexpr const char* k_kernels =
    R"csv("Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id",)csv"
    R"csv("Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp","LDS_Block_Size"
"KERNEL_DISPATCH","Agent 2",1,5,908,1,8,"void k<float, 2>(float*)",21,1000,1500,0
"KERNEL_DISPATCH","Agent 2",1,6,908,2,9,"ncclDevKernel_Generic_1(x)",22,1600,1900,0
)csv";
constexpr const char* k_copies = R"csv("Kind","Direction","Source_Agent_Id","Destination_Agent_Id",)csv"
                                 R"csv("Correlation_Id","Start_Timestamp","End_Timestamp"
"MEMORY_COPY","MEMORY_COPY_HOST_TO_DEVICE",0,2,20,900,950
"MEMORY_COPY","MEMORY_COPY_DEVICE_TO_HOST",2,0,23,2000,2100
)csv";
constexpr const char* k_markers =
    R"csv("Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"MARKER_CORE_API","step 3",908,908,1,700,2500
"MARKER_CORE_API","forward",908,908,2,840,1550
"MARKER_CORE_API","step 4",908,908,3,800,800
"MARKER_CONTROL_API","roctxProfilerResume",908,908,4,1,2
)csv";
constexpr const char* k_calls =
    R"csv("Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"HIP_RUNTIME_API","hipLaunchKernel",908,908,21,850,870
"HIP_RUNTIME_API","hipLaunchKernel",908,908,22,1560,1570
"RCCL_API","ncclAllReduce",908,908,19,1555,1580
)csv";
constexpr const char* k_agents =
    R"csv("Node_Id","Logical_Node_Id","Agent_Type","Cpu_Cores_Count","Name","Product_Name"
0,0,"CPU",64,"AMD EPYC","AMD EPYC 9575F"
2,2,"GPU",0,"gfx950","AMD Instinct MI350X"
)csv";

void check_step(const Trace& trace) {
  ASSERT_EQ(trace.events.size(), 4u);
  const GpuEvent &kernel = trace.events[0], &collective = trace.events[1];
  EXPECT_EQ(kernel.span, (Span{1000, 1500}));
  EXPECT_EQ(trace.names[kernel.name], "void k<float, 2>(float*)");
  EXPECT_EQ(kernel.device, 2);
  EXPECT_EQ(kernel.stream, 5);
  EXPECT_EQ(kernel.launched, 870);
  ASSERT_NE(kernel.launcher, k_none);
  EXPECT_EQ(trace.names[trace.host_events[kernel.launcher].name], "forward");
  ASSERT_NE(collective.collective, k_none);
  EXPECT_EQ(trace.collectives[collective.collective].operation, "all_reduce");
  EXPECT_EQ(trace.events[2].kind, GpuEventKind::memory_copy);
  EXPECT_EQ(trace.events[2].device, 2);
  EXPECT_EQ(trace.events[3].device, 2);  // the copy to the processor
  ASSERT_EQ(trace.marks.size(), 1u);     // not the mark of a moment
  EXPECT_EQ(trace.marks[0].step, 3);
  EXPECT_EQ(trace.marks[0].span, (Span{700, 2500}));
}

TEST(RocprofCsv, ReadsTheTablesOfAProcess) {
  const ScratchFolder scratch;
  const auto put = [&](const std::string& name, std::string_view text) {
    write_file_atomically(scratch.path() / name, text);
  };
  put("908_kernel_trace.csv", k_kernels);
  put("908_memory_copy_trace.csv", k_copies);
  put("908_marker_api_trace.csv", k_markers);
  put("908_hip_api_trace.csv", std::string_view(k_calls));
  put("908_agent_info.csv", k_agents);
  for (const auto& place : {scratch.path(), scratch.path() / "908_hip_api_trace.csv"}) {
    const Trace trace = read_trace(place, TraceContent::everything);
    check_step(trace);
    EXPECT_EQ(trace.device_names, (std::map<int64_t, std::string>{{2, "AMD Instinct MI350X"}}));
  }
  put("909_kernel_trace.csv", k_kernels);
  EXPECT_THROW(read_trace(scratch.path(), TraceContent::gpu), Error);
  EXPECT_EQ(read_process_traces(scratch.path(), TraceContent::gpu).size(), 2u);
  EXPECT_NO_THROW(read_trace(scratch.path() / "909_kernel_trace.csv", TraceContent::gpu));
}

TEST(RocprofCsv, OneTableAlone) {
  const Trace trace = read_trace(k_kernels, "k.csv", TraceContent::gpu);
  EXPECT_EQ(trace.events.size(), 2u);
  EXPECT_TRUE(trace.host_events.empty());
  const std::string damaged = std::string(k_kernels) + "\"KERNEL_DISPATCH\",\"Agent 2\",1,5\n";
  EXPECT_THROW(read_trace(damaged, "k.csv", TraceContent::gpu), Error);
}

TEST(RocprofCsv, PackedTables) {
  EXPECT_EQ(read_trace(zstd_bytes(k_kernels), "k", TraceContent::gpu).events.size(), 2u);
  EXPECT_EQ(read_trace(gzip_bytes(k_kernels), "k", TraceContent::gpu).events.size(), 2u);
}

// As rocprofv3 writes it, shortened: names of calls and kernels stand before the records that refer to them.
constexpr const char* k_results = R"json({"rocprofiler-sdk-tool": [{
  "metadata": {"pid": 908, "command": ["python", "train.py"]},
  "agents": [{"size": 312, "id": {"handle": 40}, "type": 1, "product_name": "AMD EPYC", "io_links": [{"type": 2}]},
             {"size": 312, "id": {"handle": 42}, "type": 2, "logical_node_type_id": 2, "product_name": "MI350X"}],
  "strings": {"callback_records": [{"kind": "NONE", "operations": []}],
    "buffer_records": [{"kind": "NONE", "operations": []}, {"kind": "HIP_RUNTIME_API", "operations": ["hipLaunchKernel"]},
      {"kind": "MARKER_CORE_API", "operations": ["roctxMarkA"]}, {"kind": "RCCL_API", "operations": ["", "ncclAllReduce"]},
      {"kind": "MEMORY_COPY", "operations": ["MEMORY_COPY_HOST_TO_DEVICE", "MEMORY_COPY_DEVICE_TO_HOST"]}],
    "marker_api": [{"key": 1, "value": "step 3"}, {"key": 2, "value": "forward"}, {"key": 3, "value": "step 4"}]},
  "kernel_symbols": [{"kernel_id": 8, "kernel_name": "k.kd", "formatted_kernel_name": "void k<float, 2>(float*)"},
                     {"kernel_id": 9, "kernel_name": "ncclDevKernel_Generic_1(x)", "formatted_kernel_name": ""}],
  "buffer_records": {
    "kernel_dispatch": [
      {"kind": 11, "operation": 2, "thread_id": 908, "correlation_id": {"internal": 21, "external": 0},
       "start_timestamp": 1000, "end_timestamp": 1500, "dispatch_info": {"agent_id": {"handle": 42},
       "queue_id": {"handle": 1}, "kernel_id": 8, "grid_size": {"x": 1, "y": 1, "z": 1}}, "stream_id": {"handle": 5}},
      {"kind": 11, "operation": 2, "thread_id": 908, "correlation_id": {"internal": 22}, "start_timestamp": 1600,
       "end_timestamp": 1900, "dispatch_info": {"agent_id": {"handle": 42}, "queue_id": {"handle": 6}, "kernel_id": 9}}],
    "hip_api": [
      {"kind": 1, "operation": 0, "correlation_id": {"internal": 21}, "start_timestamp": 850, "end_timestamp": 870,
       "thread_id": 908},
      {"kind": 1, "operation": 0, "correlation_id": {"internal": 22}, "start_timestamp": 1560, "end_timestamp": 1570,
       "thread_id": 908}],
    "rccl_api": [{"kind": 3, "operation": 1, "correlation_id": {"internal": 19}, "start_timestamp": 1555,
                  "end_timestamp": 1580, "thread_id": 908}],
    "marker_api": [
      {"kind": 2, "operation": 0, "correlation_id": {"internal": 1}, "start_timestamp": 700, "end_timestamp": 2500,
       "thread_id": 908},
      {"kind": 2, "operation": 0, "correlation_id": {"internal": 2}, "start_timestamp": 840, "end_timestamp": 1550,
       "thread_id": 908},
      {"kind": 2, "operation": 0, "correlation_id": {"internal": 3}, "start_timestamp": 800, "end_timestamp": 800,
       "thread_id": 908}],
    "memory_copy": [
      {"kind": 4, "operation": 0, "correlation_id": {"internal": 20}, "start_timestamp": 900, "end_timestamp": 950,
       "dst_agent_id": {"handle": 42}, "src_agent_id": {"handle": 40}, "bytes": 64},
      {"kind": 4, "operation": 1, "correlation_id": {"internal": 23}, "start_timestamp": 2000, "end_timestamp": 2100,
       "dst_agent_id": {"handle": 40}, "src_agent_id": {"handle": 42}, "bytes": 64}]}}]})json";

TEST(RocprofJson, ReadsTheRecordsOfAProcess) {
  const Trace trace = read_trace(k_results, "r.json", TraceContent::everything);
  check_step(trace);
  EXPECT_EQ(trace.device_names, (std::map<int64_t, std::string>{{2, "MI350X"}}));
  check_step(read_trace(gzip_bytes(k_results), "r.json.gz", TraceContent::everything));
  check_step(read_trace(zstd_bytes(k_results), "r.json.zst", TraceContent::everything));
  EXPECT_THROW(read_trace(std::string_view(k_results).substr(0, 2000), "r.json", TraceContent::gpu), Error);
  const Trace nameless = read_trace(R"({"rocprofiler-sdk-tool": {"agents": [{"id": {"handle": 1}, "type": 2}],
    "buffer_records": {"kernel_dispatch": [{"start_timestamp": 1, "end_timestamp": 2,
      "dispatch_info": {"agent_id": {"handle": 1}, "kernel_id": 7}}, {"start_timestamp": 1}]}}})",
                                    "r.json", TraceContent::gpu);
  ASSERT_EQ(nameless.events.size(), 1u);
  EXPECT_EQ(nameless.names.at(0), "kernel 7");
  EXPECT_EQ(nameless.unusable_events, 1);
}

// The facts stand in the list beside the sample, computed by another program.
TEST(RocprofJson, SampleOfATraining) {
  const auto file =
      std::filesystem::path(TPRIMAT_SHARED_DATA) / "trace_pairs" / "single" / "rocprofv3_mi350x_train_rank.json.gz";
  SKIP_WITHOUT_EXAMPLE_DATA(file);
  const Trace trace = read_trace(file, TraceContent::everything);
  EXPECT_EQ(trace.events.size(), 43915u);
  EXPECT_EQ(trace.device_names.size(), 8u);
  std::vector<Span> spans;
  int64_t sum = 0;
  for (const GpuEvent& event : trace.events) {
    EXPECT_EQ(event.device, 0);
    spans.push_back(event.span);
    sum += event.span.length();
  }
  const IntervalSet busy = unite(spans);
  EXPECT_NEAR(static_cast<double>(sum) / 1e6, 4441.741, 0.0005);
  EXPECT_NEAR(static_cast<double>(measure(busy)) / 1e6, 4233.112, 0.0005);
  EXPECT_NEAR(static_cast<double>(busy.back().end - busy.front().begin) / 1e6, 15122.023, 0.0005);
}

// Packets as the writer of Perfetto's library makes them: strings by number, from the packet that first needs them.
class PacketWriter {
 public:
  void begin(const std::string& category, const std::string& name,
             const std::vector<std::pair<std::string, uint64_t>>& figures) {
    ProtoMessage event, interned;
    event.put_varint(9, 1).put_varint(3, intern(interned, 1, category)).put_varint(10, intern(interned, 2, name));
    for (const auto& [key, value] : figures) {
      ProtoMessage annotation;
      annotation.put_varint(1, intern(interned, 3, key)).put_varint(3, value);
      event.put_bytes(4, annotation.bytes());
    }
    add(event, interned);
  }
  void end() { add(ProtoMessage().put_varint(9, 2), {}); }
  std::string bytes() const { return trace_.bytes(); }

 private:
  uint64_t intern(ProtoMessage& interned, uint32_t kind, const std::string& text) {
    auto& known = ids_[kind];
    if (const auto found = known.find(text); found != known.end()) return found->second;
    const uint64_t id = known.size() + 1;
    known[text] = id;
    interned.put_bytes(kind, ProtoMessage().put_varint(1, id).put_bytes(2, text).bytes());
    return id;
  }
  void add(const ProtoMessage& event, const ProtoMessage& interned) {
    ProtoMessage packet;
    packet.put_varint(8, 5).put_varint(10, 77).put_varint(13, first_ ? 1 : 2);
    if (!interned.bytes().empty()) packet.put_bytes(12, interned.bytes());
    packet.put_bytes(11, event.bytes());
    trace_.put_bytes(1, packet.bytes());
    first_ = false;
  }

  ProtoMessage trace_;
  std::map<uint32_t, std::map<std::string, uint64_t>> ids_;
  bool first_ = true;
};

std::string perfetto_step() {
  PacketWriter writer;
  const auto slice = [&](const char* category, const char* name,
                         std::vector<std::pair<std::string, uint64_t>> figures) {
    writer.begin(category, name, figures);
    writer.end();
  };
  slice("marker_api", "step 3", {{"begin_ns", 700}, {"end_ns", 2500}, {"tid", 908}});
  slice("marker_api", "forward", {{"begin_ns", 840}, {"end_ns", 1550}, {"tid", 908}});
  slice("hip_api", "hipLaunchKernel", {{"begin_ns", 850}, {"end_ns", 870}, {"tid", 908}, {"corr_id", 21}});
  slice("hip_api", "hipLaunchKernel", {{"begin_ns", 1560}, {"end_ns", 1570}, {"tid", 908}, {"corr_id", 22}});
  slice("rccl_api", "ncclAllReduce", {{"begin_ns", 1555}, {"end_ns", 1580}, {"tid", 908}, {"corr_id", 19}});
  slice("kernel_dispatch", "void k<float, 2>(float*)",
        {{"begin_ns", 1000}, {"end_ns", 1500}, {"agent", 2}, {"queue", 5}, {"corr_id", 21}});
  slice("kernel_dispatch", "ncclDevKernel_Generic_1(x)",
        {{"begin_ns", 1600}, {"end_ns", 1900}, {"agent", 2}, {"queue", 6}, {"corr_id", 22}});
  slice("memory_copy", "MEMORY_COPY_HOST_TO_DEVICE",
        {{"begin_ns", 900}, {"end_ns", 950}, {"src_agent", 0}, {"dst_agent", 2}, {"corr_id", 20}});
  slice("memory_copy", "MEMORY_COPY_DEVICE_TO_HOST",
        {{"begin_ns", 2000}, {"end_ns", 2100}, {"src_agent", 2}, {"dst_agent", 0}, {"corr_id", 23}});
  return writer.bytes();
}

TEST(PerfettoTrace, ReadsSlicesOfRocprof) {
  const std::string bytes = perfetto_step();
  ASSERT_TRUE(is_perfetto_trace(bytes));
  check_step(read_trace(bytes, "t.pftrace", TraceContent::everything));
  check_step(read_trace(gzip_bytes(bytes), "t.pftrace.gz", TraceContent::everything));
  EXPECT_THROW(read_trace(std::string_view(bytes).substr(0, bytes.size() - 3), "t.pftrace", TraceContent::gpu), Error);
  EXPECT_FALSE(is_perfetto_trace("\n{\"traceEvents\": []}"));
}

TEST(PerfettoTrace, SlicesWithoutTimesAreCounted) {
  PacketWriter writer;
  writer.begin("kernel_dispatch", "k", {{"agent", 2}});
  const Trace trace = read_perfetto_trace(writer.bytes(), "t", TraceContent::gpu);
  EXPECT_EQ(trace.unusable_events, 1);
  EXPECT_EQ(trace.events.size(), 0u);
}

}  // namespace
}  // namespace tprimat::logs
