#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/json.h"
#include "trace/trace.h"

// One step of a trace as lanes of spans, few enough for a page: neighbours that are too short to be seen are one span.
namespace tprimat::results {

struct TimelineSpan {
  double begin = 0, length = 0;  // us from the begin of the step
  int64_t group = 0;             // index into StepTimeline::groups: what gives it its colour
  int64_t name = 0;              // index into StepTimeline::names: of the longest event in it
  int64_t events = 1;
};

struct TimelineLane {
  std::string title;  // "stream 7", "thread 1", "layers"
  std::vector<TimelineSpan> spans;
};

struct StepTimeline {
  int64_t step = 0;
  double length = 0, marked = 0;  // us: of the picture, and of the step's mark
  std::vector<std::string> names, groups;
  std::vector<TimelineLane> lanes;
};

inline constexpr int64_t k_max_spans_of_lane = 400;

// Of the marked step whose length is the median; nothing where the trace marks none.
std::optional<StepTimeline> draw_step(const logs::Trace& trace);

Json timeline_to_json(const StepTimeline& timeline);

}  // namespace tprimat::results
