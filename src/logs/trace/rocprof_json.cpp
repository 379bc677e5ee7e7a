#include "trace/rocprof_json.h"

#include <fmt/format.h>

#include <unordered_map>
#include <vector>

#include "text/format.h"
#include "text/words.h"
#include "trace/json_stream.h"
#include "trace/trace_builder.h"

namespace tprimat::logs {
namespace {

constexpr std::string_view k_root = "\"rocprofiler-sdk-tool\"";
constexpr int64_t k_gpu_agent = 2;  // rocprofiler_agent_type_t

// The fields of a record that we read. Numbers and handles are never negative; -1: absent.
struct Record {
  int64_t kind = -1, operation = -1, thread = -1, begin = -1, end = -1, correlation = -1;
  int64_t agent = -1, queue = -1, stream = -1, kernel = -1, target = -1, source = -1;
  int64_t type = -1, number = -1, key = -1;  // of an agent; of a marker's text
  std::string name, better_name, value;

  std::optional<Span> span() const { return TraceBuilder::span_of(begin, end); }
};

// Where a figure stands: its key, and the key of the object around it.
struct RecordField {
  std::string_view outer, key;
  int64_t Record::*number = nullptr;
  std::string Record::*text = nullptr;
};
constexpr RecordField k_fields[] = {{"", "kind", &Record::kind, &Record::name},
                                    {"", "operation", &Record::operation},
                                    {"", "thread_id", &Record::thread},
                                    {"", "start_timestamp", &Record::begin},
                                    {"", "end_timestamp", &Record::end},
                                    {"", "kernel_id", &Record::kernel},
                                    {"", "type", &Record::type},
                                    {"", "logical_node_type_id", &Record::number},
                                    {"", "key", &Record::key},
                                    {"", "value", nullptr, &Record::value},
                                    {"", "product_name", nullptr, &Record::name},
                                    {"", "kernel_name", nullptr, &Record::name},
                                    {"", "formatted_kernel_name", nullptr, &Record::better_name},
                                    {"correlation_id", "internal", &Record::correlation},
                                    {"dispatch_info", "kernel_id", &Record::kernel},
                                    {"agent_id", "handle", &Record::agent},
                                    {"id", "handle", &Record::agent},
                                    {"queue_id", "handle", &Record::queue},
                                    {"stream_id", "handle", &Record::stream},
                                    {"dst_agent_id", "handle", &Record::target},
                                    {"src_agent_id", "handle", &Record::source}};

int64_t parse_handle(std::string_view text) {
  const auto value = parse_number<int64_t>(text);
  return value && *value >= 0 ? *value : -1;
}

void set_field(Record& record, std::string_view outer, std::string_view key, const JsonValue& value) {
  for (const RecordField& field : k_fields) {
    if (field.key != key || field.outer != outer) continue;
    if (value.kind == JsonKind::number && field.number != nullptr) record.*field.number = parse_handle(value.raw);
    if (value.kind == JsonKind::string && field.text != nullptr) record.*field.text = value.text();
  }
}

// Also reads objects within the record, and the texts of its list of names.
void read_record(JsonCursor& cursor, Record& record, std::vector<std::string>& names, std::string_view outer = "",
                 int depth = 0) {
  constexpr int k_deepest = 8;
  cursor.members([&](std::string_view key) {
    const char next = cursor.peek();
    if (next == '{' && depth < k_deepest)
      read_record(cursor, record, names, key, depth + 1);
    else if (next == '[')
      cursor.elements([&] { names.push_back(cursor.value().text()); });
    else
      set_field(record, outer, key, cursor.value());
  });
}

class RocprofJsonReader {
 public:
  RocprofJsonReader(std::string_view bytes, std::string_view where, TraceContent content, const MappedFile* file)
      : json_(bytes, where, file), builder_(content) {}

  Trace read();

 private:
  void read_process();
  void read_strings();
  void read_buffers();
  template <class Keep>
  void each_record(Keep keep);
  void keep_agent(const Record& record);
  void keep_kernel(const Record& record);
  void keep_copy(const Record& record);
  void keep_call(const Record& record);
  void keep_marker(const Record& record);
  int64_t device_of(int64_t agent) const;
  std::string_view operation_of(const Record& record) const;
  std::optional<int64_t> correlation_of(const Record& record) const;

  struct Kind {
    std::string name;
    std::vector<std::string> operations;
  };
  JsonStream json_;
  TraceBuilder builder_;
  std::unordered_map<int64_t, int64_t> devices_;  // number of a GPU, by its agent
  std::unordered_map<int64_t, std::string> kernels_, markers_;
  std::vector<Kind> kinds_;
  int64_t processes_ = 0;
};

Trace RocprofJsonReader::read() {
  json_.members([&](const std::string& key) {
    if (key != k_root.substr(1, k_root.size() - 2)) return json_.skip();
    if (json_.peek() == '[')
      json_.elements([&] { read_process(); });
    else
      read_process();
  });
  if (processes_ > 1)
    builder_.trace().notes.push_back(fmt::format("the results of {} processes count together", processes_));
  return builder_.finish();
}

// Numbers of kernels and texts hold for one process; its records follow them.
void RocprofJsonReader::read_process() {
  ++processes_;
  kernels_.clear(), markers_.clear(), kinds_.clear(), devices_.clear();
  json_.members([&](const std::string& key) {
    if (key == "agents")
      each_record([&](const Record& record, auto&) { keep_agent(record); });
    else if (key == "strings")
      read_strings();
    else if (key == "kernel_symbols")
      each_record([&](Record& record, auto&) {
        kernels_[record.kernel] = record.better_name.empty() ? std::move(record.name) : std::move(record.better_name);
      });
    else if (key == "buffer_records")
      read_buffers();
    else
      json_.skip();
  });
}

template <class Keep>
void RocprofJsonReader::each_record(Keep keep) {
  json_.elements([&] {
    Record record;
    std::vector<std::string> names;
    json_.item([&](JsonCursor& cursor) {
      record = {};
      names.clear();
      read_record(cursor, record, names);
    });
    keep(record, names);
  });
}

void RocprofJsonReader::read_strings() {
  json_.members([&](const std::string& key) {
    if (key == "buffer_records")
      each_record([&](Record& record, std::vector<std::string>& names) {
        kinds_.push_back({std::move(record.name), std::move(names)});
      });
    else if (key == "marker_api")
      each_record([&](Record& record, auto&) { markers_[record.key] = std::move(record.value); });
    else
      json_.skip();
  });
}

void RocprofJsonReader::read_buffers() {
  json_.members([&](const std::string& key) {
    if (key == "kernel_dispatch")
      each_record([&](const Record& record, auto&) { keep_kernel(record); });
    else if (key == "memory_copy")
      each_record([&](const Record& record, auto&) { keep_copy(record); });
    else if (key == "hip_api" || key == "rccl_api")
      each_record([&](const Record& record, auto&) { keep_call(record); });
    else if (key == "marker_api")
      each_record([&](const Record& record, auto&) { keep_marker(record); });
    else
      json_.skip();
  });
}

// The first versions do not number the GPUs: they count in the order of the list.
void RocprofJsonReader::keep_agent(const Record& record) {
  if (record.type != k_gpu_agent) return;
  const int64_t number = record.number >= 0 ? record.number : static_cast<int64_t>(devices_.size());
  devices_[record.agent] = number;
  builder_.trace().device_names[number] = printable(record.name);
}

int64_t RocprofJsonReader::device_of(int64_t agent) const {
  const auto found = devices_.find(agent);
  return found != devices_.end() ? found->second : -1;
}

std::string_view RocprofJsonReader::operation_of(const Record& record) const {
  if (record.kind < 0 || record.kind >= std::ssize(kinds_)) return {};
  const auto& operations = kinds_[static_cast<size_t>(record.kind)].operations;
  if (record.operation < 0 || record.operation >= std::ssize(operations)) return {};
  return operations[static_cast<size_t>(record.operation)];
}

std::optional<int64_t> RocprofJsonReader::correlation_of(const Record& record) const {
  if (record.correlation <= 0) return std::nullopt;
  return processes_ << 48 ^ record.correlation;
}

void RocprofJsonReader::keep_kernel(const Record& record) {
  const auto found = kernels_.find(record.kernel);
  const bool is_named = found != kernels_.end();
  const std::string number = is_named ? "" : fmt::format("kernel {}", record.kernel);
  const std::string_view name = is_named ? found->second : number;
  const int64_t stream = record.stream >= 0 ? record.stream : record.queue;
  builder_.add_work(
      {record.span(), name, device_of(record.agent), stream, GpuEventKind::kernel, correlation_of(record)});
}

// A copy belongs to the GPU that it goes to, or else to the one that it comes from.
void RocprofJsonReader::keep_copy(const Record& record) {
  const int64_t target = device_of(record.target);
  builder_.add_work({record.span(), operation_of(record), target >= 0 ? target : device_of(record.source),
                     std::max<int64_t>(record.stream, 0), GpuEventKind::memory_copy, correlation_of(record)});
}

void RocprofJsonReader::keep_call(const Record& record) {
  builder_.add_call({record.span(), operation_of(record), record.thread, correlation_of(record)});
}

// A range without a length marks a moment and is left out.
void RocprofJsonReader::keep_marker(const Record& record) {
  const bool is_core = record.kind >= 0 && record.kind < std::ssize(kinds_) &&
                       kinds_[static_cast<size_t>(record.kind)].name.starts_with("MARKER_CORE");
  const auto text = markers_.find(record.correlation);
  if (is_core && text != markers_.end() && record.end > record.begin)
    builder_.add_range(record.span(), text->second, record.thread);
}

}  // namespace

bool is_rocprof_json(std::string_view head) {
  constexpr std::string_view k_blanks = " \t\r\n";
  const size_t brace = head.find_first_not_of(k_blanks);
  if (brace == std::string_view::npos || head[brace] != '{') return false;
  const size_t key = head.find_first_not_of(k_blanks, brace + 1);
  return key != std::string_view::npos && head.substr(key).starts_with(k_root);
}

Trace read_rocprof_json(std::string_view bytes, std::string_view where, TraceContent content, const MappedFile* file) {
  return RocprofJsonReader(bytes, where, content, file).read();
}

}  // namespace tprimat::logs
