#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "extract/figure.h"
#include "text/json.h"

namespace tprimat::logs {

// One ":::MLLOG {json}" of MLPerf.
struct MlperfLine {
  std::string key;
  Json value, metadata;
  Figure seconds;  // time_ms, since 1970
};

// Removes the first one from `text`, up to the next mark or the end. Nothing if there is none, which leaves `text`
// empty, or if its JSON is malformed.
std::optional<MlperfLine> take_mlperf_line(std::string_view& text);

// A number, null as NaN; absent for anything else.
Figure json_figure(const Json& value);
Figure json_figure(const Json& object, const char* key);

// A whole number of one or more.
std::optional<int64_t> json_count(const Json& value);
std::optional<int64_t> json_count(const Json& object, const char* key);

}  // namespace tprimat::logs
