#include "compare/missing_facts.h"

#include "result/summary.h"

namespace tprimat::results {
namespace {

using Missing = std::optional<Proof>;

Missing unless(bool known) { return known ? std::nullopt : Missing(""); }

}  // namespace

Missing find_no_model(const RunResult& run) { return unless(!run.model_info.name.empty()); }

Missing find_no_rate(const RunResult& run) {
  if (run.derived.tokens_per_second_per_gpu) return std::nullopt;
  std::string missing;
  const auto name = [&](bool known, const char* what) {
    missing += known ? "" : (missing.empty() ? "" : ", ") + std::string(what);
  };
  const bool has_tokens = tokens_per_step(run).has_value();
  name(has_tokens || run.training_config.global_batch_size.value_or(0) > 0, "global batch size");
  name(has_tokens || run.training_config.sequence_length.value_or(0) > 0, "sequence length");
  name(device_count(run).has_value(), "device count");
  name(!steady_step_times(run).empty(), "steady step times");
  return missing.empty() ? Missing("") : "not known: " + missing;
}

Missing find_no_precision(const RunResult& run) { return unless(run.precision.has_value()); }
Missing find_no_shape(const RunResult& run) { return unless(run.model_info.shape.has_value()); }
Missing find_no_losses(const RunResult& run) { return unless(!run.loss_values.empty()); }
Missing find_no_learning_rates(const RunResult& run) { return unless(!run.learning_rates.empty()); }
// A log of a trainer that is none of our frameworks names it by its format.
Missing find_no_framework(const RunResult& run) { return unless(run.framework || run.source.format); }
// The framework's own rate needs none, but what a token costs depends on it.
Missing find_no_length(const RunResult& run) {
  return unless(!run.derived.tokens_per_second_per_gpu || run.training_config.sequence_length);
}
Missing find_no_platform(const RunResult& run) { return unless(run.platform.has_value()); }
Missing find_no_device(const RunResult& run) { return unless(!run.gpu_info.device_name.empty()); }

}  // namespace tprimat::results
