#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "config/diagnosis.h"
#include "config/experiment.h"
#include "config/raw.h"
#include "text/fields.h"
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
  std::map<std::string, Origin> derived;  // path -> origin of a value that is not stated
  bool plans_layouts = false;             // as in ConfigSources
  OpenRanks open_ranks = {};              // of processors, where a run may choose them

  // Report an error or a warning about the value at `path`.
  void fail(const std::string& path, std::string what, std::string hint = "");
  void warn(const std::string& path, std::string what, std::string hint = "");
  void remark(const std::string& path, std::string what, std::string detail, std::string hint = "");
  bool is_sound(std::string_view path) const { return diagnosis.is_sound(path); }
};

void resolve_training(Draft& draft);      // experiment, training, benchmarking, paths
void resolve_models(Draft& draft);        // models, with the model catalogue
void resolve_loop(Draft& draft);          // loss scale, anomalies, evaluation, data split, after the models
void resolve_platforms(Draft& draft);     // hardware, platform_optimizations, with the hardware catalogue
void resolve_frameworks(Draft& draft);    // frameworks, after the platforms
void resolve_launch(Draft& draft);        // launch
void resolve_figures(Draft& draft);       // enhanced_metrics: prices and peaks, after the platforms
void resolve_layouts(Draft& draft);       // parallelism, after all of the above
void check_fairness(const Draft& draft);  // differences between the platforms

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

// Reports a number format that the device lacks, at `path`; an unknown device lacks none.
void check_precision(Draft& draft, Platform platform, const std::string& device_model, Precision precision,
                     const std::string& path);

// Visits the fields that a raw struct and a spec have in common: visit(key, std::optional<V>& raw, V or
// std::optional<V>& spec).
template <class Raw, class Spec, class Visitor>
void for_each_pair(Raw& raw, Spec& spec, Visitor&& visit) {
  for_each_field<Raw>([&](const auto& written) {
    auto& stated = raw.*written.member;
    for_each_field<Spec>([&](const auto& resolved) {
      auto& value = spec.*resolved.member;
      using Stated = std::decay_t<decltype(stated)>;
      using Value = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<Stated, std::optional<Value>> || std::is_same_v<Stated, Value>)
        if (written.key == resolved.key) visit(written.key, stated, value);
    });
  });
}

// The tree as structs. Missing values and values of the wrong type stay absent: check_values has reported them.
raw::Config read_raw(const YamlNode& tree);

// The structs as a tree, strings quoted, keys in the order of the field lists. A value's origin is that in `derived`
// (by path), else that in `tree`, else empty.
YamlNode write_raw(const raw::Config& config, const YamlNode& tree, const std::map<std::string, Origin>& derived);

}  // namespace tprimat::suite
