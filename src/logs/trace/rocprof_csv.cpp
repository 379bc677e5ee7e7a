#include "trace/rocprof_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.h"
#include "text/csv.h"
#include "text/format.h"
#include "trace/csv_rows.h"
#include "trace/trace_builder.h"

namespace tprimat::logs {
namespace {

constexpr std::array<std::string_view, 6> k_suffixes{"_kernel_trace.csv",     "_memory_copy_trace.csv",
                                                     "_marker_api_trace.csv", "_hip_api_trace.csv",
                                                     "_rccl_api_trace.csv",   "_agent_info.csv"};

// "out/123" of "out/123_kernel_trace.csv"; nothing for other names.
std::optional<std::string> prefix_of(const std::filesystem::path& file) {
  const std::string path = file.string();
  for (const std::string_view suffix : k_suffixes)
    if (path.ends_with(suffix)) return path.substr(0, path.size() - suffix.size());
  return std::nullopt;
}

// The begin and the end of a row.
struct TimeColumns {
  explicit TimeColumns(const CsvTable& table)
      : begin(table.require_column({"Start_Timestamp"})), end(table.require_column({"End_Timestamp"})) {}
  std::optional<Span> read(const CsvTable& table) const {
    const auto first = table.whole(begin), last = table.whole(end);
    if (!first || !last) table.refuse("has no time of begin or end in nanoseconds");
    return TraceBuilder::span_of(*first, *last);
  }
  size_t begin, end;
};

std::optional<int64_t> read_correlation(const CsvTable& table, const std::optional<size_t>& column) {
  return column ? table.whole(*column) : std::nullopt;
}

int64_t read_number(const CsvTable& table, const std::optional<size_t>& column) {
  return column ? table.whole(*column).value_or(0) : 0;
}

class RocprofCsvReader {
 public:
  explicit RocprofCsvReader(TraceContent content) : builder_(content) {}

  void read_agents(CsvTable table);
  void read(CsvTable table);
  Trace finish() { return builder_.finish(); }

 private:
  void read_kernels(CsvTable& table);
  void read_copies(CsvTable& table);
  void read_calls(CsvTable& table);

  TraceBuilder builder_;
  std::set<int64_t> processors_;  // agents that are no GPU
};

void RocprofCsvReader::read_agents(CsvTable table) {
  const auto type = table.find_column({"Agent_Type"});
  if (!type) return;
  const size_t node = table.require_column({"Node_Id"});
  const size_t name = table.require_column({"Product_Name", "Name"});
  while (table.next()) {
    const auto number = table.whole(node);
    if (!number) table.refuse("has no number of an agent");
    if (table.text(*type) == "GPU")
      builder_.trace().device_names[*number] = printable(table.text(name));
    else
      processors_.insert(*number);
  }
}

void RocprofCsvReader::read(CsvTable table) {
  if (table.has_column("Kernel_Name"))
    read_kernels(table);
  else if (table.has_column("Direction"))
    read_copies(table);
  else if (table.has_column("Function"))
    read_calls(table);
}

void RocprofCsvReader::read_kernels(CsvTable& table) {
  const TimeColumns times(table);
  const size_t name = table.require_column({"Kernel_Name"}), agent = table.require_column({"Agent_Id"});
  const auto stream = table.find_column({"Stream_Id", "Queue_Id"}), correlation = table.find_column({"Correlation_Id"});
  while (table.next())
    builder_.add_work({times.read(table), table.text(name), table.whole(agent).value_or(-1), read_number(table, stream),
                       GpuEventKind::kernel, read_correlation(table, correlation)});
}

// A copy belongs to the GPU that it goes to, or else to the one that it comes from.
void RocprofCsvReader::read_copies(CsvTable& table) {
  const TimeColumns times(table);
  const size_t direction = table.require_column({"Direction"}), from = table.require_column({"Source_Agent_Id"}),
               to = table.require_column({"Destination_Agent_Id"});
  const auto stream = table.find_column({"Stream_Id"}), correlation = table.find_column({"Correlation_Id"});
  while (table.next()) {
    const std::string& kind = table.text(direction);
    const int64_t target = table.whole(to).value_or(-1);
    const bool to_host = kind.ends_with("DEVICE_TO_HOST") || processors_.contains(target);
    builder_.add_work({times.read(table), kind, to_host ? table.whole(from).value_or(-1) : target,
                       read_number(table, stream), GpuEventKind::memory_copy, read_correlation(table, correlation)});
  }
}

// Calls of HIP and RCCL, or ranges that the program named with ROCTX; one without a length marks a moment and is left
// out.
void RocprofCsvReader::read_calls(CsvTable& table) {
  const TimeColumns times(table);
  const size_t name = table.require_column({"Function"}), domain = table.require_column({"Domain"});
  const auto thread = table.find_column({"Thread_Id"}), correlation = table.find_column({"Correlation_Id"});
  while (table.next()) {
    const std::string& kind = table.text(domain);
    const auto span = times.read(table);
    const auto number = read_number(table, thread);
    if (kind.starts_with("MARKER_CORE")) {
      if (span && span->length() > 0) builder_.add_range(span, table.text(name), number);
    } else if (kind.starts_with("HIP_") || kind.starts_with("RCCL_")) {
      builder_.add_call({span, table.text(name), number, read_correlation(table, correlation)});
    }
  }
}

}  // namespace

bool is_rocprof_csv(std::string_view text) {
  if (!text.starts_with("\"Kind\"") && !text.starts_with("\"Domain\"")) return false;
  const std::vector<std::string> header = take_csv_row(text);
  const auto has = [&](std::string_view name) { return std::find(header.begin(), header.end(), name) != header.end(); };
  return has("Start_Timestamp") && has("End_Timestamp") &&
         (has("Kernel_Name") || has("Direction") || (has("Function") && has("Domain")));
}

Trace read_rocprof_csv(const std::vector<NamedText>& tables, TraceContent content) {
  RocprofCsvReader reader(content);
  for (const NamedText& each : tables) reader.read_agents({each.text, each.where});
  for (const NamedText& each : tables) reader.read({each.text, each.where});
  return reader.finish();
}

std::vector<std::vector<std::filesystem::path>> find_rocprof_csv(const std::filesystem::path& file_or_folder) {
  std::set<std::string> prefixes;
  std::error_code error;
  if (std::filesystem::is_directory(file_or_folder, error)) {
    for (const auto& entry : std::filesystem::directory_iterator(file_or_folder, error))
      if (const auto prefix = prefix_of(entry.path()); prefix && !entry.path().string().ends_with("_agent_info.csv"))
        prefixes.insert(*prefix);
  } else if (const auto prefix = prefix_of(file_or_folder)) {
    prefixes.insert(*prefix);
  }
  std::vector<std::vector<std::filesystem::path>> processes;
  for (const std::string& prefix : prefixes) {
    processes.emplace_back();
    for (const std::string_view suffix : k_suffixes)
      if (std::filesystem::exists(prefix + std::string(suffix), error))
        processes.back().emplace_back(prefix + std::string(suffix));
  }
  return processes;
}

}  // namespace tprimat::logs
