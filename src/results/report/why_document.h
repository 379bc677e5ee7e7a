#pragma once

#include <string>

#include "text/fields.h"
#include "why/ledger.h"

namespace tprimat::results::document {

// `tprimat why --json`
struct WhyReport : Ledger {
  int64_t why_version = 1;
  std::string sentence, remainder;

  static constexpr auto fields() {
    using W = WhyReport;
    return extend_fields<Ledger>(field("why_version", &W::why_version, "version of this format"),
                                 field("sentence", &W::sentence, "the gap as a sentence"),
                                 field("remainder", &W::remainder, "the part that is not explained, as a sentence"));
  }
};

WhyReport describe_why(const Ledger& ledger);

}  // namespace tprimat::results::document
