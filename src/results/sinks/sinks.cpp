#include "sinks/sinks.h"

#include <fmt/format.h>

#include "base/error.h"
#include "text/format.h"

namespace tprimat::results {

SinkKind csv_sink(), parquet_sink(), tensorboard_sink(), prometheus_sink(), mlflow_sink(), wandb_sink(), mllog_sink();

std::span<const SinkKind> sink_kinds() {
  static const SinkKind k_kinds[] = {csv_sink(),    parquet_sink(), tensorboard_sink(), prometheus_sink(),
                                     mlflow_sink(), wandb_sink(),   mllog_sink()};
  return k_kinds;
}

const SinkKind& find_sink(const std::string& name) {
  std::vector<std::string> names;
  for (const SinkKind& kind : sink_kinds()) {
    if (kind.name == name) return kind;
    names.emplace_back(kind.name);
  }
  const std::string near = nearest_word(name.substr(0, 64), names);
  throw Error(Problem{fmt::format("'{}' is not one of {}", printable(name), join(names, ", ")), "--format",
                      near.empty() ? "" : fmt::format("did you mean '{}'?", near)});
}

}  // namespace tprimat::results
