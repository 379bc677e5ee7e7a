#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "extract/dialect.h"
#include "extract/dialects/metric_names.h"
#include "extract/dialects/step_gap.h"
#include "extract/scan_text.h"
#include "text/csv.h"

namespace tprimat::logs {
namespace {

constexpr size_t k_max_columns = 4096;

// Removes the next row from the text. False at the end, and for a last row without a line end: it may be truncated
// within a number, unless a quote closes it.
bool take_row(std::string_view& text, std::vector<std::string>& cells) {
  std::string_view rest = text;
  cells = take_csv_row(rest, k_max_columns);
  const std::string_view row = text.substr(0, text.size() - rest.size());
  const bool is_quote_open = std::count(row.begin(), row.end(), '"') % 2 != 0;
  if (is_quote_open || !(row.ends_with('\n') || row.ends_with('"'))) return false;
  text = rest;
  return true;
}

std::string_view without_byte_order_mark(std::string_view text) {
  return text.substr(0, 3) == "\xef\xbb\xbf" ? text.substr(3) : text;
}

// Weights & Biases prefixes the column with the name of the run: "run-7 - train/loss".
std::string_view metric_part(std::string_view column) {
  const size_t dash = column.rfind(" - ");
  return dash == std::string_view::npos ? column : column.substr(dash + 3);
}

struct MetricColumn {
  size_t column = 0;
  const StepMetric* metric = nullptr;
};

struct Columns {
  int step = -1, clock = -1, evaluation = -1;
  std::vector<MetricColumn> metrics;
  bool several_runs = false;
};

Columns find_columns(const std::vector<std::string>& header) {
  Columns columns;
  for (size_t i = 0; i < header.size(); ++i) {
    const std::string_view name = metric_part(header[i]);
    const auto index = static_cast<int>(i);
    if (is_step_name(name) && (columns.step < 0 || contains(name, "global"))) columns.step = index;
    if (columns.clock < 0 && is_clock_name(name)) columns.clock = index;
    if (columns.evaluation < 0 && is_evaluation_loss(name)) columns.evaluation = index;
    const StepMetric* metric = find_step_metric(name);
    if (metric == nullptr) continue;
    for (const auto& [other, known] : columns.metrics)
      columns.several_runs |= known == metric && metric_part(header[other]) == name &&
                              metric_part(header[other]).size() != header[other].size();
    columns.metrics.push_back({i, metric});
  }
  return columns;
}

bool is_csv_history(std::string_view head) {
  head = without_byte_order_mark(head);
  const size_t end = head.find('\n');
  if (end == std::string_view::npos || end > 65536 || !contains(head.substr(0, end), ",")) return false;
  std::string_view first = head.substr(0, end + 1);
  std::vector<std::string> header;
  take_row(first, header);
  const Columns columns = find_columns(header);
  return columns.step >= 0 && (!columns.metrics.empty() || columns.evaluation >= 0);
}

class CsvRows {
 public:
  CsvRows(Columns columns, LogBuilder& log) : columns_(std::move(columns)), log_(log) {}

  void read(const std::vector<std::string>& cells, int64_t line_number) {
    const auto cell = [&](int column) {
      return column >= 0 && static_cast<size_t>(column) < cells.size()
                 ? parse_number(cells[static_cast<size_t>(column)])
                 : Figure();
    };
    const Figure step = cell(columns_.step);
    if (!step.finite() || *step < 0 || *step > 9e15 || std::floor(*step) != *step) return;
    LogLine line;
    line.number = line_number;
    line.unix_time = cell(columns_.clock);
    const auto number = static_cast<int64_t>(*step);
    if (const Figure loss = cell(columns_.evaluation))
      log_.add_evaluation(line, number, loss, "evaluation loss of the table");
    ExtractedStep record = LogBuilder::start_step(line, number);
    bool any = false;
    for (const auto& [column, metric] : columns_.metrics) {
      const Figure value = cell(static_cast<int>(column));
      if (!value) continue;
      set_step_metric(record, *metric, *value);
      any = true;
    }
    if (any) add(record);
  }

 private:
  void add(ExtractedStep& record) {
    const StepGap gap = gaps_.measure(record);
    record.mean_of = mean_of_gap(gap);
    set_time_from_gap(record, gap);
    log_.add(record);
  }

  Columns columns_;
  LogBuilder& log_;
  GapMeter gaps_;
};

void read_csv_history(std::string_view whole, LogBuilder& log) {
  whole = without_byte_order_mark(whole);
  std::vector<std::string> cells;
  take_row(whole, cells);
  Columns columns = find_columns(cells);
  if (columns.step < 0) throw Error(Problem{"has no step column", "CSV header", "name it step, _step or global_step"});
  if (columns.several_runs)
    log.note("the table holds several runs side by side: only the first column of each figure is read");
  CsvRows rows(std::move(columns), log);
  for (int64_t line = 2; take_row(whole, cells); ++line) rows.read(cells, line);
  if (!whole.empty()) log.note("the table has no final newline: its last row may be truncated and is ignored");
}

}  // namespace

Dialect csv_dialect() {
  return {.id = "csv",
          .title = "CSV history (Weights & Biases export, Lightning metrics.csv)",
          .versions = "any with a header row",
          .fields = {{"step", "step, _step, iteration, iter, global_step, trainer/global_step"},
                     {"loss", "loss, train/loss, train_loss, train_loss_step, reduced_train_loss, lm loss ..."},
                     {"learning_rate", "lr, learning_rate, train/learning_rate, lr-<optimizer>"},
                     {"grad_norm", "grad_norm, train/grad_norm, grad-norm"},
                     {"time_seconds",
                      "step_time, iteration-time, train_step_timing in s, .._ms; else derived from "
                      "_timestamp or Wall time"}},
          .is_document = is_csv_history,
          .read_document = read_csv_history};
}

}  // namespace tprimat::logs
