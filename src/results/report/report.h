#pragma once

#include <string>

#include "compare/comparison.h"
#include "report/plots/picture.h"
#include "text/json.h"

// Pure functions: a comparison in, a document out. Nothing here reads, writes, measures or judges.
namespace tprimat::results {

inline constexpr size_t k_report_width = 118;  // of sentences; tables may be wider
std::string render_terminal(const Comparison& comparison, bool colour, size_t width = k_report_width);
std::string render_markdown(const Comparison& comparison);
Json comparison_to_json(const Comparison& comparison);
std::string render_csv(
    const Comparison& comparison);  // one line per participant: facts, then every metric with its interval

// One self-contained page: verdicts and tables as plain HTML, charts and filters by embedded scripts. docs/report.md
// shows it.
std::string render_html(const Comparison& comparison);

// Per model one band of 2 x 3 panels: draw_plot.h writes it as SVG or PNG.
Picture plot_comparison(const Comparison& comparison);

}  // namespace tprimat::results
