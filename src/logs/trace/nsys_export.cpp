#include "trace/nsys_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "text/format.h"
#include "trace/sqlite_bytes.h"
#include "trace/trace_builder.h"

namespace tprimat::logs {
namespace {

constexpr std::string_view k_kernels = "CUPTI_ACTIVITY_KIND_KERNEL", k_copies = "CUPTI_ACTIVITY_KIND_MEMCPY",
                           k_fills = "CUPTI_ACTIVITY_KIND_MEMSET", k_graphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                           k_calls = "CUPTI_ACTIVITY_KIND_RUNTIME", k_driver_calls = "CUPTI_ACTIVITY_KIND_DRIVER",
                           k_ranges = "NVTX_EVENTS";

constexpr size_t k_max_processes = 512;  // ranks of one report

// CUpti_ActivityMemcpyKind, as far as copies of a training occur. The PyTorch profiler uses the same names.
std::string_view name_of_copy(int64_t kind) {
  constexpr std::array<std::string_view, 11> k_names{"Memcpy",      "Memcpy HtoD", "Memcpy DtoH", "Memcpy HtoA",
                                                     "Memcpy AtoH", "Memcpy AtoA", "Memcpy AtoD", "Memcpy DtoA",
                                                     "Memcpy DtoD", "Memcpy HtoH", "Memcpy PtoP"};
  return kind >= 0 && kind < std::ssize(k_names) ? k_names[static_cast<size_t>(kind)] : k_names[0];
}

// "cudaLaunchKernel_v7000" -> "cudaLaunchKernel"
std::string_view without_version(std::string_view name) {
  const size_t end = name.rfind("_v");
  if (end == std::string_view::npos || name.find_first_not_of("0123456789", end + 2) != std::string_view::npos)
    return name;
  return name.substr(0, end);
}

// A thread's number holds its process's: 8 bits of hardware, 8 of the virtual machine, 24 of the process, 24 its own.
uint64_t process_of(int64_t thread) { return static_cast<uint64_t>(thread) & ~uint64_t{0xffffff}; }
int64_t pid_of(uint64_t process) { return static_cast<int64_t>(process >> 24 & 0xffffff); }

class NsysReader {
 public:
  NsysReader(std::string_view bytes, std::string_view where, TraceContent content)
      : where_(where), database_(bytes, where), builder_(content) {}

  // Of one process alone, or of all.
  Trace read(std::optional<uint64_t> process = {});
  std::set<uint64_t> list_processes();

 private:
  void require_report();
  void read_strings();
  void read_gpus();
  void read_session();
  void read_work(std::string_view table, std::string_view name_column, GpuEventKind kind);
  void read_calls(std::string_view table);
  void read_ranges();
  void describe_processes();
  bool is_wanted(uint64_t process) const { return !only_process_ || process == *only_process_; }
  std::string_view string_of(int64_t id) const;
  std::string_view name_of_work(const SqliteTable& row, std::string_view table) const;
  int64_t device_of(uint64_t process, int64_t device) const;
  int64_t correlation_of(uint64_t process, int64_t number);

  std::string where_;
  SqliteBytes database_;
  TraceBuilder builder_;
  std::optional<uint64_t> only_process_;
  std::unordered_map<int64_t, std::string> strings_;
  std::map<std::pair<int64_t, int64_t>, int64_t> gpus_;  // of a process's device
  std::set<uint64_t> processes_;                         // that used a GPU
  std::map<uint64_t, uint64_t> process_numbers_;
  int64_t whole_graphs_ = 0;
  bool work_names_process_ = true;  // the first releases did not
};

void NsysReader::require_report() {
  for (const std::string_view table : {k_kernels, k_copies, k_graphs, k_calls, k_ranges})
    if (database_.has_table(table)) return;
  if (database_.has_table_like("rocpd_"))
    throw Error(Problem{"is a database of rocprofv3 (rocpd), which is not read", where_,
                        "convert it with `rocpd convert --output-format pftrace`, or record with `rocprofv3 "
                        "--output-format json`"});
  throw Error(Problem{"is an SQLite database, but no report of Nsight Systems with CUDA or NVTX events", where_,
                      "profile with `nsys profile --trace cuda,nvtx`, then run `nsys export --type sqlite`"});
}

void NsysReader::read_strings() {
  SqliteTable rows(database_, "StringIds", {"id", "value"});
  while (rows.next()) strings_.emplace(rows.number(0, -1), rows.text(1));
}

std::string_view NsysReader::string_of(int64_t id) const {
  const auto found = strings_.find(id);
  return found != strings_.end() ? std::string_view(found->second) : std::string_view();
}

// Some versions say which GPU a process sees as which device. Without that, devices have CUDA's numbers, which can
// differ from the GPUs' own.
void NsysReader::read_gpus() {
  SqliteTable devices(database_, "TARGET_INFO_CUDA_DEVICE", {"pid", "cudaId", "gpuId"});
  while (devices.next())
    if (devices.has(2)) gpus_[{devices.number(0), devices.number(1)}] = devices.number(2);
  SqliteTable gpus(database_, "TARGET_INFO_GPU", {"id", "name", "cuDevice"});
  while (gpus.next()) {
    const int64_t number = gpus_.empty() ? gpus.number(2, gpus.number(0)) : gpus.number(0);
    builder_.trace().device_names[number] = printable(gpus.text(1));
  }
}

int64_t NsysReader::device_of(uint64_t process, int64_t device) const {
  const auto found = gpus_.find({pid_of(process), device});
  return found != gpus_.end() ? found->second : device;
}

// Times count from the begin of the session.
void NsysReader::read_session() {
  SqliteTable session(database_, "TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"});
  if (session.next() && session.has(0)) builder_.trace().base_unix_nanoseconds = session.number(0);
}

// Unique across processes, each of which numbers its calls from 1. Never 0.
int64_t NsysReader::correlation_of(uint64_t process, int64_t number) {
  if (!work_names_process_) process = 0;
  const uint64_t index = process_numbers_.try_emplace(process, process_numbers_.size() + 1).first->second;
  return static_cast<int64_t>(index << 32 | static_cast<uint32_t>(number));
}

std::string_view NsysReader::name_of_work(const SqliteTable& row, std::string_view table) const {
  constexpr int k_name = 6, k_short_name = 7;
  if (table == k_copies) return name_of_copy(row.number(k_name));
  if (table == k_fills) return "Memset";
  if (table == k_graphs) return "CUDA graph";
  const std::string_view name = string_of(row.number(k_name, -1));
  return name.empty() ? string_of(row.number(k_short_name, -1)) : name;
}

void NsysReader::read_work(std::string_view table, std::string_view name_column, GpuEventKind kind) {
  SqliteTable rows(database_, table,
                   {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", name_column, "shortName"});
  while (rows.next()) {
    work_names_process_ = rows.has(5);
    const uint64_t process = process_of(rows.number(5));
    if (!is_wanted(process)) continue;
    processes_.insert(process);
    TraceBuilder::Work work;
    work.span = rows.has(0) && rows.has(1) ? TraceBuilder::span_of(rows.number(0), rows.number(1)) : std::nullopt;
    work.name = name_of_work(rows, table);
    work.device = device_of(process, rows.number(2));
    work.stream = rows.number(3);
    work.kind = kind;
    if (rows.has(4)) work.correlation = correlation_of(process, rows.number(4));
    builder_.add_work(work);
    if (table == k_graphs) ++whole_graphs_;
  }
}

void NsysReader::read_calls(std::string_view table) {
  SqliteTable rows(database_, table, {"start", "end", "nameId", "globalTid", "correlationId"});
  while (rows.next()) {
    if (!is_wanted(process_of(rows.number(3)))) continue;
    TraceBuilder::Call call;
    call.span = rows.has(1) ? TraceBuilder::span_of(rows.number(0, -1), rows.number(1)) : std::nullopt;
    call.name = without_version(string_of(rows.number(2, -1)));
    call.thread = rows.number(3);
    if (rows.has(4)) call.correlation = correlation_of(process_of(rows.number(3)), rows.number(4));
    builder_.add_call(call);
  }
}

// Ranges that were pushed and popped (59, 70) or started and ended (60, 71); marks of a moment have no end.
void NsysReader::read_ranges() {
  SqliteTable rows(database_, k_ranges, {"start", "end", "eventType", "text", "textId", "globalTid"});
  while (rows.next()) {
    constexpr std::array<int64_t, 4> k_kinds{59, 60, 70, 71};
    const bool is_range = !rows.has(2) || std::find(k_kinds.begin(), k_kinds.end(), rows.number(2)) != k_kinds.end();
    const std::string_view name = rows.has(3) ? rows.text(3) : string_of(rows.number(4, -1));
    if (!is_range || !rows.has(1) || name.empty()) continue;
    const uint64_t process = process_of(rows.number(5));
    if (!is_wanted(process)) continue;
    const bool of_first =
        processes_.size() < 2 || process == *processes_.begin() || !(step_of_range(name) || name == "step");
    if (of_first) builder_.add_range(TraceBuilder::span_of(rows.number(0, -1), rows.number(1)), name, rows.number(5));
  }
}

void NsysReader::describe_processes() {
  auto& notes = builder_.trace().notes;
  if (processes_.size() > 1)
    notes.push_back(fmt::format("{} processes used a GPU: steps are those that process {} marked", processes_.size(),
                                pid_of(*processes_.begin())));
  if (processes_.size() > 1 && gpus_.empty())
    notes.push_back("the report does not say which GPUs they are: devices of the same number count as one");
  if (whole_graphs_ > 0)
    notes.push_back(
        fmt::format("{} CUDA graphs were recorded as a whole, without their kernels: profile with "
                    "--cuda-graph-trace=node",
                    whole_graphs_));
}

std::set<uint64_t> NsysReader::list_processes() {
  require_report();
  std::set<uint64_t> processes;
  for (const std::string_view table : {k_kernels, k_copies, k_fills, k_graphs}) {
    SqliteTable rows(database_, table, {"globalPid"});
    while (rows.next()) processes.insert(process_of(rows.number(0)));
  }
  return processes;
}

Trace NsysReader::read(std::optional<uint64_t> process) {
  only_process_ = process;
  require_report();
  read_strings();
  read_gpus();
  read_session();
  read_work(k_kernels, "demangledName", GpuEventKind::kernel);
  read_work(k_copies, "copyKind", GpuEventKind::memory_copy);
  read_work(k_fills, "bytes", GpuEventKind::memory_set);
  read_work(k_graphs, "graphId", GpuEventKind::kernel);
  read_calls(k_calls);
  read_calls(k_driver_calls);
  read_ranges();
  describe_processes();
  return builder_.finish();
}

}  // namespace

Trace read_nsys_export(std::string_view bytes, std::string_view where, TraceContent content) {
  return NsysReader(bytes, where, content).read();
}

std::vector<Trace> read_nsys_processes(std::string_view bytes, std::string_view where, TraceContent content) {
  const std::set<uint64_t> processes = NsysReader(bytes, where, content).list_processes();
  if (processes.size() < 2) return {read_nsys_export(bytes, where, content)};
  if (processes.size() > k_max_processes)  // each takes a pass over the whole report
    throw Error(
        Problem{fmt::format("holds {} processes that used a GPU, more than {}", processes.size(), k_max_processes),
                std::string(where), "export the report of each node by itself"});
  std::vector<Trace> traces;
  for (const uint64_t process : processes) traces.push_back(NsysReader(bytes, where, content).read(process));
  return traces;
}

}  // namespace tprimat::logs
