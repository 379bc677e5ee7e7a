#include "trace/kernel_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "text/csv.h"
#include "text/words.h"

namespace tprimat::logs {
namespace {

constexpr double k_longest_total = 1e18;  // ns: 31 years

using Cells = std::vector<std::string>;

std::optional<size_t> find_cell(const Cells& header, std::initializer_list<std::string_view> names) {
  for (size_t i = 0; i < header.size(); ++i)
    if (std::find(names.begin(), names.end(), header[i]) != names.end()) return i;
  return std::nullopt;
}

// The columns that we read.
struct TableColumns {
  size_t name = 0, calls = 0, nanoseconds = 0;
  bool copies = false;  // rows are directions of memory operations, not kernels
};

std::optional<TableColumns> read_header(std::string_view line) {
  if (line.find("Total Time (ns)") == std::string_view::npos && line.find("TotalDurationNs") == std::string_view::npos)
    return std::nullopt;
  const Cells header = take_csv_row(line);
  const auto name = find_cell(header, {"Name", "Operation"});
  const auto calls = find_cell(header, {"Instances", "Count", "Calls"});
  const auto time = find_cell(header, {"Total Time (ns)", "TotalDurationNs"});
  if (!name || !calls || !time) return std::nullopt;
  return TableColumns{*name, *calls, *time, header[*name] == "Operation"};
}

// "5,850,000" as well: some versions group the digits.
std::optional<double> read_figure(std::string text) {
  std::erase(text, ',');
  const auto value = parse_number<double>(text);
  return value && *value >= 0.0 && *value < k_longest_total ? value : std::nullopt;
}

class TableReader {
 public:
  explicit TableReader(std::string_view where) : where_(where) {}

  void read_line(std::string_view line) {
    ++line_number_;
    if (auto header = read_header(line)) {
      columns_ = header;
    } else if (line.find_first_not_of(" \r") == std::string_view::npos) {
      columns_.reset();  // an empty line ends a table
    } else if (columns_) {
      read_row(take_csv_row(line));
    }
  }

  DeviceSummary finish() {
    if (totals_.empty()) throw Error(Problem{"is an empty table of kernels", where_, "nothing was recorded"});
    DeviceSummary summary;
    set_kernels(summary, std::move(totals_));
    summary.kernel_calls = kernel_calls_;
    summary.kernel_seconds = kernel_seconds_;
    return summary;
  }

 private:
  void read_row(const Cells& cells) {
    const size_t widest = std::max({columns_->name, columns_->calls, columns_->nanoseconds});
    if (cells.size() <= widest) return columns_.reset();  // other text right after a table
    const auto calls = read_figure(cells[columns_->calls]), time = read_figure(cells[columns_->nanoseconds]);
    if (!calls || !time || *calls != std::floor(*calls))
      throw Error(Problem{fmt::format("line {} has no count or no time", line_number_), where_, ""});
    const std::string& name = cells[columns_->name];
    const KernelClass kernel_class = columns_->copies ? KernelClass::copy : classify_kernel(name);
    totals_.push_back({name, kernel_class, static_cast<int64_t>(*calls), *time / 1e9, 0.0});
    if (columns_->copies) return;
    kernel_calls_ += static_cast<int64_t>(*calls);
    kernel_seconds_ += *time / 1e9;
  }

  std::string where_;
  int64_t line_number_ = 0, kernel_calls_ = 0;
  double kernel_seconds_ = 0.0;
  std::optional<TableColumns> columns_;
  std::vector<KernelTotal> totals_;
};

template <class Visit>
void for_each_table_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

bool is_kernel_table(std::string_view text) {
  constexpr size_t k_head_bytes = 65536;  // nsys prints messages before the header
  if (text.starts_with('{') || text.starts_with('[') || text.starts_with('\x1f')) return false;
  bool found = false;
  for_each_table_line(text.substr(0, k_head_bytes),
                      [&](std::string_view line) { found = found || read_header(line).has_value(); });
  return found;
}

DeviceSummary read_kernel_table(std::string_view text, std::string_view where) {
  TableReader reader(where);
  for_each_table_line(text, [&](std::string_view line) { reader.read_line(line); });
  return reader.finish();
}

}  // namespace tprimat::logs
