#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "extract/figure.h"
#include "spec/names.h"
#include "text/json.h"

namespace tprimat::logs {

// One ":::MLLOG {json}" of MLPerf.
struct MlperfLine {
  std::string key;
  Json value, metadata;
  Figure seconds;  // time_ms, since 1970
};

// Cuts the first one off `text`, from its mark to the next mark or the end. Nothing, with `text` empty, when there is
// none; with `text` cut, when its JSON is broken.
std::optional<MlperfLine> take_mlperf_line(std::string_view& text);

// A number in an object, null as NaN; absent when it is not there or something else.
Figure json_figure(const Json& object, const char* key);
Figure json_figure(const Json& value);

// What the name of a submission's platform says: "1xXE9685Lx8B200-SXM-180GB", "64xNVIDIA DGX H100", "tinybox_8xMI300X".
struct MlperfPlatform {
  std::optional<int64_t> gpu_count;
  std::optional<std::string> gpu_name;
  std::optional<Platform> platform;
};
MlperfPlatform parse_mlperf_platform(std::string_view name);

}  // namespace tprimat::logs
