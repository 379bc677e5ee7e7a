#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/document.h"
#include "report/plots/picture.h"
#include "report/step_timeline.h"
#include "text/json.h"
#include "why/ledger.h"
#include "why/pipeline_report.h"
#include "why/what_if.h"

// Pure functions: a ledger in, a document out.
namespace tprimat::results {

// Fraction of the gap; nothing where there is no gap.
std::optional<double> share_of_gap(const Ledger& ledger, double seconds);

// A term that is worth a line: at least 0.5 % of the gap or of the largest term, whichever is larger.
bool is_large_term(const Ledger& ledger, const LedgerTerm& term);

// At most `count` terms with a cause, longest change first; only those that are large.
std::vector<const LedgerTerm*> largest_terms(const Ledger& ledger, size_t count);

// "B takes 8.14 ms (2.1 %) more per step than A."
std::string describe_gap(const Ledger& ledger);

// Seconds that no term explains.
double remainder_of(const Ledger& ledger);

// Whether the terms explain the gap, as a sentence.
std::string describe_remainder(const Ledger& ledger);

inline constexpr size_t k_why_width = 80;
struct WhyStyle {
  bool colour = false;
  size_t width = k_why_width;
  bool all = false;  // every detail of every term, and the classes
};
Document build_why(const Ledger& ledger, bool all);
std::string render_why(const Ledger& ledger, const WhyStyle& style);

// The timeline of a side.
struct SideTimeline {
  std::string label;
  StepTimeline timeline;
};
// A page, complete in itself.
std::string render_why_page(const Ledger& ledger, const std::vector<SideTimeline>& timelines);

Json why_to_json(const Ledger& ledger, const std::optional<WhatIfReport>& what_if = {});
Json pipeline_to_json(const PipelineReport& pipeline, const std::optional<WhatIfReport>& what_if = {});

// From A's step over the terms to B's step.
Picture plot_why(const Ledger& ledger);

}  // namespace tprimat::results
