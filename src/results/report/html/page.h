#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compare/comparison.h"
#include "report/document.h"
#include "result/metrics.h"
#include "text/json.h"

// The page (frame.html around page.html) is plain HTML: without scripts only the curves are missing.
namespace tprimat::results {

// For element content and quoted attributes: content of files is text, never markup. Control characters become spaces.
std::string escape_html(std::string_view text);

// For the inside of a <script> element: valid JSON without bytes that could end the element or count as markup, and
// without line separators that old JavaScript treats as line ends.
std::string escape_script_json(const Json& value);

// A whole page around its body. The policy allows these styles and scripts alone; the scripts run in their order.
struct PageFrame {
  std::string_view policy;
  std::string title;  // escaped
  std::span<const std::string_view* const> styles, scripts;
};
std::string render_frame(const PageFrame& frame, const std::string& body, const Json& data);

std::string render_html_table(const TextTable& table);

// As a list of that class; each item has the class of its tone.
std::string render_html_lines(const std::vector<Line>& lines, const char* list_class);

// All participants of all models in one table: facts, every metric with its interval. Scripts sort and filter by
// attributes: data-value holds a figure in full, data-model and the like a fact.
std::string render_run_table(const Comparison& comparison);

// Table of the findings with evidence and remedy.
std::string render_audit(const Comparison& comparison);

// Data of the page's scripts: comparison_to_json, plus each participant's series, peaks, sensors and derivations, and
// each model's settings side by side. Findings are listed once, in `findings`, and referenced by index.
Json page_to_json(const Comparison& comparison);

// A series for a chart.
struct StepPoints {
  std::vector<int64_t> steps;
  std::vector<double> values;  // five significant digits; NaN: none at that step
  size_t recorded = 0;         // entries of the series; more than values.size() where it was thinned
};

// Beyond this many entries a series is thinned: the lowest and the highest of each of half as many buckets remain, so
// that no spike is lost.
inline constexpr size_t k_max_drawn_points = 2000;

StepPoints thin_series(const RunResult& result, const std::vector<double>& series);

// The metric's formula with the participant's numbers in it: "131 072 tokens x 480 steps / 1 206.2 s". For repetitions
// that of the first run, with a note that the figure is the mean over the runs. Nothing if the participant lacks the
// figure.
std::optional<std::string> derive_figure(const Contender& contender, const Metric& metric);

}  // namespace tprimat::results
