#include "trace/operation_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "base/printable.h"
#include "text/json.h"
#include "text/words.h"

namespace tprimat::logs {
namespace {

constexpr double k_longest_seconds = 1e7;   // of a step: 115 days
constexpr int64_t k_max_indices = 1 << 20;  // ranks, stages, micro-batches

enum class Column : uint8_t { step, dp_rank, stage, rank, operation, chunk, micro_batch, begin, duration };

struct ColumnName {
  std::string_view name;
  Column column;
};
constexpr std::array k_columns = std::to_array<ColumnName>({
    {"step", Column::step},
    {"dp_rank", Column::dp_rank},
    {"stage", Column::stage},
    {"pp_stage", Column::stage},
    {"pp_rank", Column::stage},
    {"rank", Column::rank},
    {"operation", Column::operation},
    {"optype", Column::operation},
    {"kind", Column::operation},
    {"chunk", Column::chunk},
    {"mc", Column::chunk},
    {"model_chunk", Column::chunk},
    {"micro_batch", Column::micro_batch},
    {"mb_id", Column::micro_batch},
    {"begin", Column::begin},
    {"start_ts", Column::begin},
    {"start", Column::begin},
    {"duration", Column::duration},
});
constexpr std::array k_required = {Column::step,      Column::dp_rank, Column::stage,
                                   Column::operation, Column::begin,   Column::duration};

std::optional<Column> find_column(std::string_view name) {
  for (const ColumnName& known : k_columns)
    if (known.name == name) return known.column;
  return std::nullopt;
}

std::optional<OperationKind> parse_kind(std::string_view text) {
  std::string name(text);
  std::replace(name.begin(), name.end(), '-', '_');
  return parse_enum<OperationKind>(name);
}

std::optional<int64_t> parse_index(std::string_view text) {
  const auto index = parse_number<int64_t>(text);
  if (!index || *index < -1) return std::nullopt;
  return index;
}

std::optional<double> parse_seconds(std::string_view text) {
  const auto seconds = parse_number<double>(text);
  if (!seconds || !(std::fabs(*seconds) <= k_longest_seconds)) return std::nullopt;
  return seconds;
}

std::string_view unquoted(std::string_view cell) {
  cell = trim_blanks(cell);
  if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') cell = cell.substr(1, cell.size() - 2);
  return cell;
}

// Sets one field; false where the text does not fit.
bool set_field(WorkerOperation& row, Column column, std::string_view text) {
  const auto set_index = [&](int32_t& field) {
    const auto index = parse_index(text);
    if (index && *index < k_max_indices) field = static_cast<int32_t>(*index);
    return index && *index < k_max_indices;
  };
  const auto set_seconds = [&](double& field) {
    const auto seconds = parse_seconds(text);
    field = seconds.value_or(0);
    return seconds.has_value();
  };
  switch (column) {
    case Column::dp_rank: return set_index(row.dp_rank) && row.dp_rank >= 0;
    case Column::stage: return set_index(row.stage) && row.stage >= 0;
    case Column::rank: return set_index(row.rank);
    case Column::chunk: return set_index(row.chunk);
    case Column::micro_batch: return set_index(row.micro_batch);
    case Column::begin: return set_seconds(row.begin);
    case Column::duration: return set_seconds(row.duration) && row.duration >= 0;
    case Column::operation: {
      const auto kind = parse_kind(text);
      row.kind = kind.value_or(row.kind);
      return kind.has_value();
    }
    case Column::step: {
      const auto step = parse_index(text);
      row.step = step.value_or(-1);
      return row.step >= 0;
    }
  }
  return false;
}

std::string json_cell(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return fmt::format("{}", value.get<int64_t>());
  return value.is_number() ? fmt::format("{}", value.get<double>()) : std::string();
}

auto order_of(const WorkerOperation& row) { return std::tuple(row.step, row.dp_rank, row.stage, row.begin); }

}  // namespace

void OperationTableReader::fail(std::string what, std::string hint) const {
  throw Error(Problem{fmt::format("line {} {}", line_number_, what), where_, std::move(hint)});
}

void OperationTableReader::read_line(std::string_view line) {
  ++line_number_;
  line = trim_blanks(line);
  if (line.empty()) return;
  if (line.front() == '{')
    read_object(line);
  else if (header_.empty())
    read_header(line);
  else
    read_row(line);
}

void OperationTableReader::read_header(std::string_view line) {
  for (const std::string_view cell : split(line, ',')) header_.emplace_back(unquoted(cell));
  for (const Column needed : k_required) {
    const bool found = std::any_of(header_.begin(), header_.end(),
                                   [&](const std::string& name) { return find_column(name) == needed; });
    if (!found)
      fail(fmt::format("has no column {}", enum_name(needed)),
           "the header names step, dp_rank, stage, operation, begin and duration");
  }
}

void OperationTableReader::read_row(std::string_view line) {
  const auto texts = split(line, ',');
  if (texts.size() != header_.size())
    fail(fmt::format("has {} cells where the header has {}", texts.size(), header_.size()));
  std::vector<Cell> cells;
  for (size_t i = 0; i < texts.size(); ++i) cells.push_back({header_[i], unquoted(texts[i])});
  add(cells);
}

void OperationTableReader::read_object(std::string_view line) {
  const Json object = parse_json(line, fmt::format("{}:{}", where_, line_number_));
  std::vector<std::string> texts;
  texts.reserve(object.size());
  std::vector<Cell> cells;
  for (const auto& [name, value] : object.items()) {
    texts.push_back(json_cell(value));
    cells.push_back({name, texts.back()});
  }
  add(cells);
}

void OperationTableReader::add(const std::vector<Cell>& cells) {
  WorkerOperation row;
  uint32_t seen = 0;
  for (const Cell& cell : cells) {
    const auto column = find_column(cell.name);
    if (!column) continue;
    if (!set_field(row, *column, cell.text))
      fail(fmt::format("has an unusable {}: '{}'", cell.name, printable(cell.text.substr(0, 60))),
           *column == Column::operation ? "known operations: " + enum_choices<OperationKind>() : "");
    seen |= 1u << static_cast<unsigned>(*column);
  }
  for (const Column needed : k_required)
    if ((seen & 1u << static_cast<unsigned>(needed)) == 0) fail(fmt::format("has no {}", enum_name(needed)));
  rows_.push_back(row);
}

std::vector<WorkerOperation> OperationTableReader::finish() {
  if (rows_.empty()) throw Error(Problem{"is an empty table of operations", where_, "nothing was recorded"});
  sort_operations(rows_, where_);
  return std::move(rows_);
}

void sort_operations(std::vector<WorkerOperation>& rows, std::string_view where) {
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return order_of(a) < order_of(b); });
  for (size_t i = 1; i < rows.size(); ++i) {
    const WorkerOperation &a = rows[i - 1], &b = rows[i];
    if (a.step == b.step && a.dp_rank == b.dp_rank && a.stage == b.stage && a.rank != b.rank)
      throw Error(Problem{fmt::format("has ranks {} and {} for stage {} of replica {} in step {}", a.rank, b.rank,
                                      a.stage, a.dp_rank, a.step),
                          std::string(where), "keep one rank of each tensor-parallel group"});
  }
}

bool is_operation_table(std::string_view text) {
  const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  const auto has = [&](std::string_view word) { return line.find(word) != std::string_view::npos; };
  return has("dp_rank") && has("step") && has("duration") && !has("traceEvents");
}

std::vector<WorkerOperation> read_operation_table(std::string_view text, std::string_view where) {
  OperationTableReader reader(where);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    reader.read_line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.finish();
}

}  // namespace tprimat::logs
