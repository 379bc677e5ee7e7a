#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/fields.h"
#include "trace/trace.h"
#include "why/product_rates.h"
#include "why/replay.h"

namespace tprimat::results {

// What --what-if may change.
enum class WhatIfTarget : uint8_t {
  products,
  attention,
  memory_bound,
  communication,
  overlap,
  slowest_rank,
  launch,
  data
};

// "products=probe", "products=1.2x", "communication=0", "overlap=full", "slowest-rank=median", "launch=0".
struct WhatIf {
  std::string text;
  WhatIfTarget target = WhatIfTarget::products;
  std::optional<double> factor;  // of durations; absent: the word probe, full or median
};

// Throws Error for other words, with the possible ones.
WhatIf parse_what_if(std::string_view text);

// Beside the recording.
struct WhatIfFacts {
  std::vector<ProductRate> product_rates;  // of the machine that recorded
};

struct WhatIfAnswer {
  std::string change;
  double step_seconds = 0;   // what the step would take: measured step, times the change of the replayed one
  double saved_seconds = 0;  // per step; negative: it would take longer
  std::string note = {};     // what was left as it is; may be empty

  static constexpr auto fields() {
    using A = WhatIfAnswer;
    return field_list(field("change", &A::change, "the changed durations, as asked for"),
                      field("step_seconds", &A::step_seconds, "what the step would take, s"),
                      field("saved_seconds", &A::saved_seconds, "measured step - this one, s"),
                      field("note", &A::note, "what the change could not reach; empty: nothing"));
  }
};

struct WhatIfReport {
  double measured_seconds = 0;  // mean step as recorded
  double replayed_seconds = 0;  // the replay's, with unchanged durations
  double replay_error = 0;      // replayed / measured - 1
  std::vector<WhatIfAnswer> answers;

  static constexpr auto fields() {
    using R = WhatIfReport;
    return field_list(field("measured_seconds", &R::measured_seconds, "mean step as recorded, s"),
                      field("replayed_seconds", &R::replayed_seconds, "replay of it with unchanged durations, s"),
                      field("replay_error", &R::replay_error, "replayed / measured - 1"),
                      field("answers", &R::answers, "one per change, each by itself"));
  }
};

// Every change by itself, on the recorded steps of one run. Throws Error where a change cannot be made: probe without
// measured rates or shapes, slowest-rank with a single rank.
WhatIfReport answer_what_if(std::span<const logs::Trace> ranks, std::span<const WhatIf> changes,
                            const WhatIfFacts& facts = {});
WhatIfReport answer_what_if(const PipelineReplay& pipeline, std::span<const WhatIf> changes);

// For the terminal.
std::string render_what_if(const WhatIfReport& report);

}  // namespace tprimat::results
