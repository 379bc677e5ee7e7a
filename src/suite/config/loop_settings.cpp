#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "config/draft.h"
#include "config/paired_fields.h"
#include "config/values.h"

namespace tprimat::suite {
namespace {

constexpr const char* k_split_hint = "give the weights of training, validation and test, such as 949,50,1";

void fail(Draft& draft, const std::string& path, std::string what, std::string hint = "") {
  draft.diagnosis.add_error({std::move(what), origin_of(draft.tree, path), std::move(hint)}, path);
}

template <class Raw, class Spec>
void take_pairs(Draft& draft, Raw& from, Spec& to, const std::string& path) {
  for_each_pair(from, to, [&](std::string_view key, auto& stated, auto& value) {
    value = take_or(draft, stated, join_path(path, std::string(key)), value);
  });
}

void resolve_loss_scale(Draft& draft) {
  const std::string path = "training.precision.loss_scale";
  LossScaleSpec& to = draft.experiment.loss_scale;
  take_pairs(draft, draft.raw.training.precision.loss_scale, to, path);
  if (to.minimum <= to.initial || !draft.diagnosis.is_sound(path)) return;
  fail(draft, path + ".minimum", fmt::format("{}.minimum {} is above initial {}", path, to.minimum, to.initial),
       "lower minimum: the scale starts at initial and never falls below minimum");
}

void resolve_anomalies(Draft& draft) {
  const std::string path = "training.anomalies";
  raw::Anomalies& from = draft.raw.training.anomalies;
  AnomalySpec& to = draft.experiment.anomalies;
  const bool spike_is_stated = from.spike.has_value();
  const auto not_finite = take_or(draft, from.not_finite, path + ".not_finite", raw::OnNotFinite::stop);
  to.not_finite = not_finite == raw::OnNotFinite::skip ? OnAnomaly::skip : OnAnomaly::stop;
  take_pairs(draft, from, to, path);
  if (!draft.diagnosis.is_sound(path)) return;
  if (to.spike_factor > 0 && to.spike_factor <= 1)
    fail(draft, path + ".spike_factor",
         fmt::format("{}.spike_factor must be 0 or above 1, got {}", path, to.spike_factor),
         "a loss above this multiple of its running mean is a spike");
  if (to.spike_factor == 0 && spike_is_stated)
    draft.diagnosis.add_warning(
        {fmt::format("{}.spike is {}, but spike_factor 0 disables spike detection", path, enum_name(to.spike)),
         origin_of(draft.tree, path + ".spike"), "for example  spike_factor: 2"});
}

// Weights of training, validation and test as data/sample_order.h reads them; nothing for a text that is none.
std::optional<std::array<double, 3>> parse_split(std::string text) {
  std::erase(text, ' ');
  std::array<double, 3> weights{};
  const char *at = text.data(), *const end = at + text.size();
  for (double& weight : weights) {
    const auto [stop, failure] = std::from_chars(at, end, weight, std::chars_format::fixed);
    if (failure != std::errc() || !(weight >= 0) || !std::isfinite(weight)) return std::nullopt;
    at = stop;
    if (at == end) break;
    if (*at++ != ',') return std::nullopt;
  }
  const double sum = weights[0] + weights[1] + weights[2];
  return at == end && sum > 0 && std::isfinite(sum) ? std::optional(weights) : std::nullopt;
}

void require_validation_data(Draft& draft, double weight) {
  const std::string path = "training.evaluation.interval";
  if (draft.experiment.evaluation.interval == 0 || weight > 0 || !draft.diagnosis.is_sound(path)) return;
  for (const ModelEntry& model : draft.experiment.models) {
    if (model.dataset == "synthetic") continue;
    return fail(draft, path,
                fmt::format("{} is {}, but training.data.split {} leaves no validation data in models.{}.dataset_path",
                            path, draft.experiment.evaluation.interval, draft.experiment.data_split, model.spec.name),
                k_split_hint);
  }
}

void resolve_evaluation(Draft& draft) {
  const std::string path = "training.data.split";
  take_pairs(draft, draft.raw.training.evaluation, draft.experiment.evaluation, "training.evaluation");
  draft.experiment.data_split = take_or(draft, draft.raw.training.data.split, path, draft.experiment.data_split);
  if (!draft.diagnosis.is_sound(path)) return;
  const auto weights = parse_split(draft.experiment.data_split);
  if (!weights)
    return fail(draft, path,
                fmt::format("{} must be up to three comma-separated weights with a positive sum, got '{}'", path,
                            draft.experiment.data_split.substr(0, 40)),
                k_split_hint);
  if ((*weights)[0] == 0)
    return fail(draft, path, fmt::format("{} {} leaves no training data", path, draft.experiment.data_split),
                k_split_hint);
  require_validation_data(draft, (*weights)[1]);
}

}  // namespace

void resolve_loop(Draft& draft) {
  draft.experiment.deterministic = draft.raw.training.general.deterministic;
  resolve_loss_scale(draft);
  resolve_anomalies(draft);
  resolve_evaluation(draft);
}

}  // namespace tprimat::suite
