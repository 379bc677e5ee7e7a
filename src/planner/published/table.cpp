#include "published/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "published/submissions.h"
#include "text/words.h"

namespace tprimat::planner {
namespace {

constexpr size_t k_max_bytes = size_t{64} << 20;  // the largest such table known has 50 kB
constexpr size_t k_max_columns = 1000;

[[noreturn]] void refuse_table(const std::string& path, int64_t line, const std::string& what) {
  throw Error(Problem{what, line > 0 ? fmt::format("{}:{}", path, line) : path,
                      "give a tab-separated table with one header row; docs/metrics.md lists the columns"});
}

void check_header(const std::vector<std::string>& columns, const std::string& path) {
  const std::set<std::string> names(columns.begin(), columns.end());
  if (columns.size() > k_max_columns) refuse_table(path, 1, fmt::format("has {} columns", columns.size()));
  if (names.size() != columns.size()) refuse_table(path, 1, "names a column twice");
  if (names.count("model") == 0 && !lists_submissions(columns)) refuse_table(path, 1, "has no column 'model'");
  constexpr const char* k_figures[] = {"tflops_per_gpu",     "mfu_pct",          "hfu_pct",
                                       "step_time_s",        "tokens_per_s",     "tokens_per_s_per_gpu",
                                       "step_time_s_median", "throughput_median"};
  if (std::ranges::none_of(k_figures, [&](const char* each) { return names.contains(each); }))
    refuse_table(path, 1, fmt::format("has nothing to validate: none of the columns {}", fmt::join(k_figures, ", ")));
}

PublishedRow make_row(const std::vector<std::string>& columns, const std::vector<std::string_view>& cells,
                      int64_t line) {
  PublishedRow row{line, {}};
  for (size_t i = 0; i < columns.size(); ++i)
    if (!cells[i].empty()) row.cells[columns[i]] = cells[i];
  if (lists_submissions(columns)) name_submission_cells(row);
  return row;
}

}  // namespace

const std::string& PublishedRow::cell(std::string_view column) const {
  static const std::string empty;
  const auto found = cells.find(column);
  return found == cells.end() ? empty : found->second;
}

PublishedTable parse_published_table(std::string_view text, const std::string& path) {
  if (text.size() > k_max_bytes) refuse_table(path, 0, "is larger than 64 MiB");
  if (text.find('\0') != std::string_view::npos) refuse_table(path, 0, "is not text: it holds a zero byte");
  PublishedTable table{std::filesystem::path(path).stem().string(), {}};
  std::vector<std::string> columns;
  for (int64_t line = 1; !text.empty(); ++line) {
    std::string_view row = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), row.size() + 1));
    if (row.ends_with('\r')) row.remove_suffix(1);
    const std::vector<std::string_view> cells = split(row, '\t');
    if (line == 1) {
      columns.assign(cells.begin(), cells.end());
      check_header(columns, path);
    } else if (cells.size() == columns.size()) {
      table.rows.push_back(make_row(columns, cells, line));
    } else if (cells.size() > 1 || !cells.front().empty()) {
      refuse_table(path, line, fmt::format("has {} cells where the header has {}", cells.size(), columns.size()));
    }
  }
  if (columns.empty()) refuse_table(path, 0, "is empty");
  return table;
}

PublishedTable load_published_table(const std::string& path) { return parse_published_table(read_file(path), path); }

}  // namespace tprimat::planner
