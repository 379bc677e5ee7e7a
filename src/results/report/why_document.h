#pragma once

#include <optional>
#include <string>

#include "text/fields.h"
#include "why/ledger.h"
#include "why/pipeline_report.h"
#include "why/what_if.h"

namespace tprimat::results::document {

// `tprimat why --json`
struct WhyReport : Ledger {
  int64_t why_version = 1;
  std::string sentence, remainder;
  std::optional<WhatIfReport> what_if;

  static constexpr auto fields() {
    using W = WhyReport;
    return extend_fields<Ledger>(
        field("why_version", &W::why_version, "version of this format"),
        field("sentence", &W::sentence, "the gap as a sentence"),
        field("remainder", &W::remainder, "the unexplained part, as a sentence"),
        field("what_if", &W::what_if, "B's step with changed durations; absent: not requested"));
  }
};

// `tprimat why FOLDER --json`
struct PipelineDocument : PipelineReport {
  std::optional<WhatIfReport> what_if;

  static constexpr auto fields() {
    using P = PipelineDocument;
    return extend_fields<PipelineReport>(
        field("what_if", &P::what_if, "the step with changed durations; absent: not requested"));
  }
};

WhyReport describe_why(const Ledger& ledger);

}  // namespace tprimat::results::document
