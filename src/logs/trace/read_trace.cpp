#include <fmt/format.h>

#include <deque>

#include "base/error.h"
#include "base/files.h"
#include "trace/chrome_trace.h"
#include "trace/nsys_export.h"
#include "trace/perfetto_trace.h"
#include "trace/rocprof_csv.h"
#include "trace/rocprof_json.h"
#include "trace/sqlite_bytes.h"
#include "trace/trace.h"
#include "trace/trace_format.h"
#include "trace/unpacked.h"

namespace tprimat::logs {
namespace {

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TraceFormat format_of(std::string_view head) {
  if (is_sqlite(head)) return TraceFormat::nsys_export;
  if (is_rocprof_json(head)) return TraceFormat::rocprof_json;
  if (is_rocprof_csv(head)) return TraceFormat::rocprof_csv;
  if (is_perfetto_trace(head)) return TraceFormat::perfetto_trace;
  return TraceFormat::chrome_trace;
}

Trace read_whole(TraceFormat format, std::string_view bytes, std::string_view where, TraceContent content) {
  if (format == TraceFormat::nsys_export) return read_nsys_export(bytes, where, content);
  if (format == TraceFormat::perfetto_trace) return read_perfetto_trace(bytes, where, content);
  return read_rocprof_csv({{std::string(where), bytes}}, content);
}

// JSON is read as a stream, packed or not; the other formats need all of their bytes.
Trace read_bytes(std::string_view bytes, std::string_view where, TraceContent content, const MappedFile* file) {
  const TraceFormat format = find_trace_format(bytes, where);
  if (format == TraceFormat::chrome_trace) return read_chrome_trace(bytes, where, content, file);
  if (format == TraceFormat::rocprof_json) return read_rocprof_json(bytes, where, content, file);
  return is_packed(bytes) ? read_whole(format, unpack(bytes, where), where, content)
                          : read_whole(format, bytes, where, content);
}

Trace read_tables(const std::vector<std::filesystem::path>& files, TraceContent content) {
  std::deque<MappedFile> mapped;
  std::vector<NamedText> tables;
  for (const auto& file : files) tables.push_back({file.string(), text_of(mapped.emplace_back(file))});
  return read_rocprof_csv(tables, content);
}

}  // namespace

TraceFormat find_trace_format(std::string_view bytes, std::string_view where) {
  constexpr size_t k_head_bytes = 1 << 20;
  const auto unpacker = make_unpacker(bytes, where);
  return format_of((unpacker ? unpacker->next_piece() : bytes).substr(0, k_head_bytes));
}

Trace read_trace(std::string_view bytes, std::string_view where, TraceContent content) {
  return read_bytes(bytes, where, content, nullptr);
}

Trace read_trace(const std::filesystem::path& file, TraceContent content) {
  const auto processes = find_rocprof_csv(file);
  if (processes.size() > 1)
    throw Error(Problem{fmt::format("holds tables of {} processes", processes.size()), file.string(),
                        fmt::format("give one of them, such as {}", processes.front().front().string())});
  if (!processes.empty()) return read_tables(processes.front(), content);
  const MappedFile mapped(file);
  return read_bytes(text_of(mapped), file.string(), content, &mapped);
}

std::vector<Trace> read_process_traces(const std::filesystem::path& file_or_folder, TraceContent content) {
  std::vector<Trace> traces;
  for (const auto& process : find_rocprof_csv(file_or_folder)) traces.push_back(read_tables(process, content));
  if (!traces.empty()) return traces;
  const MappedFile mapped(file_or_folder);
  const std::string_view bytes = text_of(mapped);
  const std::string where = file_or_folder.string();
  if (find_trace_format(bytes, where) != TraceFormat::nsys_export) return {read_bytes(bytes, where, content, &mapped)};
  return is_packed(bytes) ? read_nsys_processes(unpack(bytes, where), where, content)
                          : read_nsys_processes(bytes, where, content);
}

}  // namespace tprimat::logs
