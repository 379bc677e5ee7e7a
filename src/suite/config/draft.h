#pragma once

#include <map>
#include <string>

#include "config/diagnosis.h"
#include "config/experiment.h"
#include "config/raw.h"
#include "text/yaml.h"

namespace tprimat::suite {

// A configuration on its way from raw to validated. Each resolve_ function reads its sections of `raw`, writes what
// they leave out back into `raw` (with the origin in `derived`), fills its part of `experiment` and reports to
// `diagnosis`.
struct Draft {
  const YamlNode& tree;  // for origins
  Diagnosis& diagnosis;
  raw::Config raw;
  Experiment experiment;
  std::map<std::string, Origin> derived;  // path -> where a value that nobody wrote comes from
};

void resolve_training(Draft& draft);      // experiment, training, benchmarking, paths
void resolve_models(Draft& draft);        // models, with the model catalogue
void resolve_loop(Draft& draft);          // loss scale, anomalies, evaluation, data split, after the models
void resolve_platforms(Draft& draft);     // hardware, platform_optimizations, with the hardware catalogue
void resolve_launch(Draft& draft);        // launch
void resolve_figures(Draft& draft);       // enhanced_metrics: prices and peaks, after the platforms
void resolve_layouts(Draft& draft);       // parallelism, after all of the above
void check_fairness(const Draft& draft);  // what differs between the platforms

inline Origin derived_by(std::string reason) { return {Provenance::derived, std::move(reason)}; }

// Takes the value of `raw`, or writes `fallback` there with its origin.
template <class T>
T take_or(Draft& draft, std::optional<T>& raw, const std::string& path, T fallback,
          const Origin& origin = {Provenance::assumed}) {
  if (!raw) {
    raw = fallback;
    draft.derived[path] = origin;
  }
  return *raw;
}

}  // namespace tprimat::suite
