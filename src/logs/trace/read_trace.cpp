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
  return read_rocprof_csv({{std::string(where), std::string(bytes)}}, content);
}

Trace read_tables(const std::vector<std::filesystem::path>& files, TraceContent content) {
  std::vector<NamedText> tables;
  for (const auto& file : files) tables.push_back({file.string(), read_file(file)});
  return read_rocprof_csv(tables, content);
}

}  // namespace

TraceFormat find_trace_format(std::string_view bytes, std::string_view where) {
  constexpr size_t k_head_bytes = 1 << 20;
  const auto unpacker = make_unpacker(bytes, where);
  return format_of((unpacker ? unpacker->next_piece() : bytes).substr(0, k_head_bytes));
}

// JSON is read as a stream, packed or not; the other formats need all of their bytes.
Trace read_trace(std::string_view bytes, std::string_view where, TraceContent content) {
  const TraceFormat format = find_trace_format(bytes, where);
  if (format == TraceFormat::chrome_trace) return read_chrome_trace(bytes, where, content);
  if (format == TraceFormat::rocprof_json) return read_rocprof_json(bytes, where, content);
  return is_packed(bytes) ? read_whole(format, unpack(bytes, where), where, content)
                          : read_whole(format, bytes, where, content);
}

Trace read_trace(const std::filesystem::path& file, TraceContent content) {
  if (const auto tables = find_rocprof_csv(file); !tables.empty()) return read_tables(tables, content);
  const MappedFile mapped(file);
  const auto bytes = mapped.bytes();
  return read_trace({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file.string(), content);
}

}  // namespace tprimat::logs
