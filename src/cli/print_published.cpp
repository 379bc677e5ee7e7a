#include "cli/print_published.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"
#include "published/built_in_tables.h"
#include "published/columns.h"
#include "report/document.h"
#include "text/csv.h"
#include "text/format.h"
#include "text/words.h"

namespace tprimat::cli {
namespace {

using planner::PublishedEntry;

std::string count_cell(const std::optional<double>& value) { return value ? format_count(*value) : ""; }
std::string count_cell(const std::optional<int64_t>& value) { return value ? std::to_string(*value) : ""; }

// Sources that anyone can open need no word.
std::string reach_cell(const PublishedEntry& entry) {
  return entry.reach == "public repository" || entry.reach == "arXiv" ? "" : entry.reach;
}

struct ListColumn {
  const char* title;
  std::string (*cell)(const PublishedEntry& entry);
  int dropped;  // the largest number goes first
  bool right = false;
};
constexpr ListColumn k_columns[] = {
    {"id", [](const PublishedEntry& e) { return e.id; }, 0},
    {"model", [](const PublishedEntry& e) { return results::shorten(e.model, 28); }, 8},
    {"GPUs", [](const PublishedEntry& e) { return count_cell(e.gpus); }, 7, true},
    {"GPU", [](const PublishedEntry& e) { return results::shorten(e.gpu, 16); }, 9},
    {"framework", [](const PublishedEntry& e) { return results::shorten(e.framework, 30); }, 5},
    {"precision", [](const PublishedEntry& e) { return results::shorten(e.precision, 14); }, 6},
    {"SL", [](const PublishedEntry& e) { return count_cell(e.sequence_length); }, 3, true},
    {"GBS", [](const PublishedEntry& e) { return count_cell(e.global_batch); }, 4, true},
    {"layout", [](const PublishedEntry& e) { return e.layout; }, 2},
    {"tokens/s per GPU", [](const PublishedEntry& e) { return count_cell(e.tokens_per_second_per_gpu); }, 0, true},
    {"TFLOP/s", [](const PublishedEntry& e) { return count_cell(e.tflops_per_gpu); }, 1, true},
    {"MFU", [](const PublishedEntry& e) { return e.mfu ? format_percent(*e.mfu) : ""; }, 0, true},
    {"reach", reach_cell, 0}};

// In code points.
size_t longest_line(const std::string& text) {
  constexpr unsigned char k_top_bits = 0xC0, k_continues = 0x80;
  size_t longest = 0;
  for (const std::string_view line : split(text, '\n'))
    longest = std::max<size_t>(longest, std::ranges::count_if(line, [](char c) {
                                 return (static_cast<unsigned char>(c) & k_top_bits) != k_continues;
                               }));
  return longest;
}

std::string render_columns(const std::vector<PublishedEntry>& entries, int most) {
  TextTable table;
  std::vector<const ListColumn*> shown;
  for (const ListColumn& column : k_columns)
    if (column.dropped <= most) shown.push_back(&column);
  for (const ListColumn* column : shown) {
    if (column->right) table.right.push_back(table.header.size());
    table.header.emplace_back(column->title);
  }
  for (const PublishedEntry& entry : entries) {
    auto& cells = table.rows.emplace_back();
    for (const ListColumn* column : shown) cells.push_back(column->cell(entry));
  }
  return render_text(table);
}

std::string csv_value(const std::string& text) { return csv_text(text); }
std::string csv_value(const std::optional<double>& value) { return csv_number(value); }
std::string csv_value(const std::optional<int64_t>& value) { return count_cell(value); }

std::string wrap_lines(const std::string& text, size_t width, const std::string& indent) {
  std::string out;
  for (const std::string& line : results::wrap_words(text, width)) out += indent + line + '\n';
  return out;
}

// Longer ones have lines of their own.
constexpr size_t k_value_width = 30;
constexpr size_t k_name_width = 22;

// "seq   8192   tokens per sequence"
std::string render_cell(const std::string& name, const std::string& value, std::string_view meaning, size_t width) {
  const bool fits = value.size() <= k_value_width;
  const std::string front = fmt::format("  {:{}}  {:{}}  ", name, k_name_width, fits ? value : "", k_value_width);
  constexpr size_t k_narrowest = 20;
  const size_t rest = std::max(k_narrowest, width > front.size() ? width - front.size() : 0);
  std::string text, indent = front;
  for (const std::string& line : results::wrap_words(meaning, rest)) {
    text += indent + line + '\n';
    indent = std::string(front.size(), ' ');
  }
  if (!fits) text += wrap_lines(value, width > 8 ? width - 6 : 2, "      ");
  return text;
}

std::string describe_count(const planner::CountedMfu& counted) {
  std::string text = fmt::format("  MFU {:14} {:>7}, {:.4g} GFLOP per token", counted.convention,
                                 format_percent(counted.mfu), counted.flops_per_token / 1e9);
  if (!counted.deviations.empty()) text += fmt::format(" ({})", join(counted.deviations, ", "));
  return text + '\n';
}

std::string render_figures(const planner::PublishedFigures& figures) {
  std::string text;
  if (figures.tokens_per_second_per_gpu)
    text += fmt::format("  {} tokens/s per GPU, from {}\n", format_count(*figures.tokens_per_second_per_gpu),
                        figures.rate_from.value_or(""));
  for (const planner::CountedMfu& each : figures.mfu) text += describe_count(each);
  if (figures.peak) text += fmt::format("  peak {} TFLOP/s\n", *figures.peak);
  if (figures.missing) text += fmt::format("  no MFU: {}\n", *figures.missing);
  if (figures.minutes_to_target) text += fmt::format("  {:g} minutes to the target\n", *figures.minutes_to_target);
  return text;
}

std::string render_prediction(const planner::PublishedDetails& details, size_t width) {
  const planner::PlannedRow& planned = details.planned;
  if (!planned.predicted) return wrap_lines("no prediction: " + planned.missing.value_or(""), width - 2, "  ");
  std::string text = fmt::format("{} tokens/s per GPU", format_count(*planned.predicted));
  if (planned.published)
    text += fmt::format(", {} of the published rate", format_percent(*planned.predicted / *planned.published));
  if (details.predicted_low && details.predicted_high)
    text += fmt::format("; 80 % of comparable runs lie between {} and {} ({})", format_count(*details.predicted_low),
                        format_count(*details.predicted_high), details.interval_basis.value_or(""));
  if (!planned.assumptions.empty()) text += fmt::format("; assumed: {}", join(planned.assumptions, ", "));
  return wrap_lines(text, width - 2, "  ");
}

}  // namespace

std::string render_published_list(const std::vector<PublishedEntry>& entries, size_t width) {
  std::string text;
  for (int most = 9; most >= 0; --most) {
    text = render_columns(entries, most);
    if (longest_line(text) <= width) break;
  }
  const std::string sum = fmt::format(
      "{} result{} of version {} of the data; MFU counts causal attention, over the peaks of the hardware catalogue",
      entries.size(), entries.size() == 1 ? "" : "s", planner::k_published_version);
  return text + '\n' + wrap_lines(sum, std::max<size_t>(width, 20), "");
}

std::string render_published_csv(const std::vector<PublishedEntry>& entries) {
  std::string text;
  for_each_field<PublishedEntry>(
      [&](const auto& field) { text += fmt::format("{}{}", text.empty() ? "" : ",", field.key); });
  text += '\n';
  for (const PublishedEntry& entry : entries) {
    std::string line;
    for_each_field<PublishedEntry>(
        [&](const auto& field) { line += (line.empty() ? "" : ",") + csv_value(entry.*field.member); });
    text += line + '\n';
  }
  return text;
}

std::string render_published_row(const planner::PublishedDetails& details, size_t width) {
  std::string text =
      fmt::format("{} ({}, version {} of the data)\n", details.id, details.table, planner::k_published_version);
  for (const planner::PublishedColumn& column : planner::published_columns())
    if (const auto found = details.cells.find(std::string(column.name));
        column.name != "id" && found != details.cells.end())
      text += render_cell(found->first, printable(found->second), column.meaning, width);
  for (const auto* list : {&planner::published_readings(), &planner::published_reaches()})
    for (const planner::PublishedColumn& word : *list)
      for (const char* column : {"reading", "reach"})
        if (const auto found = details.cells.find(column); found != details.cells.end() && found->second == word.name)
          text += fmt::format("\n{}: {}", word.name, word.meaning);
  text += fmt::format("\n\n{}\n", details.link);
  text += "\nderived\n" + render_figures(details.derived);
  return text + "\nplanner\n" + render_prediction(details, width);
}

}  // namespace tprimat::cli
