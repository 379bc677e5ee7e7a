#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/comparison.h"
#include "result/metrics.h"
#include "text/json.h"

// The page (page.html) is plain HTML that tells everything but the curves where scripts do not run.
namespace tprimat::results {

// For element content and quoted attributes alike: what a file says is text, never markup. Control characters become
// spaces.
std::string escape_html(std::string_view text);

// For the inside of a <script> element: valid JSON in which no byte can end the element or be taken for markup, and no
// line separator stands that JavaScript of old took for the end of a line.
std::string escape_script_json(const Json& value);

// All participants of all models in one table: facts, every metric with its interval. What a script sorts and filters
// by stands in attributes: data-value holds a figure in full, data-model and the like a fact.
std::string render_run_table(const Comparison& comparison);

// What every finding is about, what shows it, and what to do.
std::string render_audit(const Comparison& comparison);

// What the page's scripts draw from: comparison_to_json with the same numbers, and to each participant its series,
// peaks, sensors and derivations, to each model its settings side by side. Findings stand once, in `findings`, and are
// referred to by their place there.
Json page_to_json(const Comparison& comparison);

// A series as a chart draws it.
struct StepPoints {
  std::vector<int64_t> steps;
  std::vector<double> values;  // five significant digits; NaN: none at that step
  size_t recorded = 0;         // entries of the series; more than values.size() where it was thinned
};

// Beyond this many entries a series is thinned: of each of half as many buckets the lowest and the highest remain, so
// that no spike is lost.
inline constexpr size_t k_max_drawn_points = 2000;

StepPoints thin_series(const RunResult& result, const std::vector<double>& series);

// The metric's formula with the participant's numbers in it: "131 072 tokens x 480 steps / 1 206.2 s". Of repetitions
// the first run's, and that the figure is the mean over the runs. Nothing where the participant has no such figure.
std::optional<std::string> derive_figure(const Contender& contender, const Metric& metric);

}  // namespace tprimat::results
