#include "report/html/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "report/figures.h"
#include "report/report.h"
#include "result/peak.h"
#include "result/summary.h"
#include "stats/descriptive.h"
#include "text/json_fields.h"

namespace tprimat::results {
namespace {

// Rounds to five significant digits, more than a screen can show; NaN and infinities stay.
double round_significant(double value) {
  if (!std::isfinite(value)) return value;
  const std::string text = fmt::format("{:.5g}", value);
  double rounded = value;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

void add_point(const RunResult& result, const std::vector<double>& series, size_t entry, StepPoints& points) {
  points.steps.push_back(step_number(result, entry));
  points.values.push_back(round_significant(series[entry]));
}

// Beyond this many pairs of a model, their sentences and further ratios would make up most of the page.
constexpr size_t k_max_full_pairs = 200;

// Moves the findings into one list and replaces them by their indices.
class FindingList {
 public:
  Json refer(const Json& findings) {
    Json places = Json::array();
    for (const Json& finding : findings) {
      const auto [found, is_new] = places_.try_emplace(print_json_line(finding), places_.size());
      if (is_new) all_.push_back(finding);
      places.push_back(found->second);
    }
    return places;
  }
  Json take() { return std::move(all_); }

 private:
  std::map<std::string, size_t> places_;
  Json all_ = Json::array();
};

bool counts_from_one(const std::vector<int64_t>& steps) {
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i] != static_cast<int64_t>(i) + 1) return false;
  return true;
}

// {"y": values, "x": steps where these are not 1, 2, 3 ..., "recorded": entries where the series was thinned}
Json points_to_json(const RunResult& run, const std::vector<double>& series) {
  const StepPoints points = thin_series(run, series);
  Json json = {{"y", to_json(points.values)}};
  if (!counts_from_one(points.steps)) json["x"] = points.steps;
  if (points.values.size() < points.recorded) json["recorded"] = points.recorded;
  return json;
}

Json run_to_json(const LoadedRun& loaded) {
  const RunResult& run = loaded.result;
  Json json = {{"path", loaded.path}, {"warmup", to_json(run.warmup)}};
  if (run.warmup.steps_excluded > 0 && !run.step_times.empty())
    json["last_warmup_step"] =
        step_number(run, std::min(static_cast<size_t>(run.warmup.steps_excluded), run.step_times.size()) - 1);
  if (run.statistics) json["outliers"] = run.statistics->outliers;
  if (run.steps && !run.steps->labelled.empty()) json["labelled"] = to_json(run.steps->labelled);
  if (!run.step_times.empty()) json["step_times"] = points_to_json(run, run.step_times);
  if (!run.loss_values.empty()) json["loss_values"] = points_to_json(run, run.loss_values);
  if (!run.learning_rates.empty()) json["learning_rates"] = points_to_json(run, run.learning_rates);
  return json;
}

// Quantiles 0, 1, ... 100 % of the steady steps of all runs, s: of all steps, even if fewer are drawn.
Json distribution_to_json(const Contender& contender) {
  std::vector<double> steady;
  for (const LoadedRun& run : contender.runs)
    for (const double time : steady_step_times(run.result)) steady.push_back(time);
  if (steady.size() < 2) return nullptr;
  Json quantiles = Json::array();
  for (int percent = 0; percent <= 100; ++percent)
    quantiles.push_back(round_significant(quantile(steady, percent / 100.0)));
  return {{"steps", steady.size()}, {"quantiles", quantiles}};
}

// Peaks of one device by kind: "catalogue" (its maker's), "measured" (achieved on it), "config" (from the
// configuration).
Json peaks_to_json(const RunResult& run) {
  Json peaks = Json::object();
  if (run.precision)
    if (const auto peak = catalogue_peak(run.gpu_info.device_name, *run.precision)) peaks["catalogue"] = to_json(*peak);
  if (run.derived.peak) {
    const std::string kind = run.derived.peak->id.substr(0, run.derived.peak->id.find(':'));
    peaks[kind] = to_json(*run.derived.peak);
  }
  return peaks;
}

Json derivations_to_json(const Contender& contender) {
  Json derivations = Json::object();
  for (const Metric& metric : metrics())
    if (const auto text = derive_figure(contender, metric)) derivations[std::string(metric.key)] = *text;
  return derivations;
}

void add_measurements(const Contender& contender, Json& json) {
  json["runs"] = Json::array();
  for (const LoadedRun& run : contender.runs) json["runs"].push_back(run_to_json(run));
  json["distribution"] = distribution_to_json(contender);
  json["peaks"] = peaks_to_json(contender.first());
  json["telemetry"] = to_json(contender.first().telemetry);
  if (contender.first().memory_metrics.measurement_method)
    json["memory_method"] = *contender.first().memory_metrics.measurement_method;
  json["derivations"] = derivations_to_json(contender);
}

void shorten_pairs(Json& pairs, FindingList& findings) {
  const bool full = pairs.size() <= k_max_full_pairs;
  for (Json& pair : pairs) {
    pair["findings"] = findings.refer(pair["findings"]);
    if (full) continue;
    for (const char* key : {"headline", "explanation", "ratios"}) pair.erase(key);
  }
}

Json metrics_to_json() {
  Json list = Json::array();
  for (const Metric& metric : metrics())
    list.push_back({{"key", metric.key},
                    {"title", metric.title},
                    {"unit", metric.unit},
                    {"format", metric.format == MetricFormat::percent ? "percent" : "number"},
                    {"better", enum_name(metric.better)},
                    {"formula", metric.formula}});
  return list;
}

using Settings = std::map<std::string, std::string>;

void add_settings(const std::string& prefix, const Json& object, Settings& settings) {
  for (const auto& [key, value] : object.items())
    if (!value.is_null() && value != "") settings[prefix + key] = print_json_bare(value);
}

Settings list_settings(const RunResult& run) {
  Settings settings;
  add_settings("device: ", to_json(run.gpu_info), settings);
  add_settings("training: ", to_json(run.training_config), settings);
  add_settings("layout: ", to_json(run.parallelism_config), settings);
  add_settings("environment: ", to_json(run.environment), settings);
  if (run.effective_config) add_settings("effective: ", to_json(*run.effective_config), settings);
  if (run.model_info.shape) add_settings("model: ", to_json(*run.model_info.shape), settings);
  const auto add = [&](const char* key, const std::optional<std::string>& value) {
    if (value && !value->empty()) settings[key] = *value;
  };
  add("framework installation", run.framework_installation);
  add("framework version", run.framework_version);
  add("dataset", run.dataset);
  add("configuration hash", run.config_hash);
  add("started", run.timestamp);
  return settings;
}

Settings list_settings(const Contender& contender) {
  Settings all = list_settings(contender.first());
  for (size_t i = 1; i < contender.runs.size(); ++i)
    for (const auto& [key, value] : list_settings(contender.runs[i].result)) {
      std::string& known = all[key];
      if (known.empty())
        known = value;
      else if ((" | " + known + " | ").find(" | " + value + " | ") == std::string::npos)
        known += " | " + value;
    }
  return all;
}

Json setting_to_json(const std::string& key, const std::vector<Settings>& all) {
  std::vector<std::string> values;
  std::vector<int> of;
  for (const Settings& each : all) {
    const auto found = each.find(key);
    if (found == each.end()) {
      of.push_back(-1);
      continue;
    }
    const auto known = std::ranges::find(values, found->second);
    of.push_back(static_cast<int>(known - values.begin()));
    if (known == values.end()) values.push_back(found->second);
  }
  Json json = {{"key", key}, {"values", values}};
  if (std::ranges::any_of(of, [](int place) { return place != 0; })) json["of"] = of;
  return json;
}

// Device and requested settings of each participant, key by key: [{"key", "values", "of"}], where `of` holds for each
// participant the index of its value in `values`, or -1 if its file does not state it. A key with one value for all has
// no `of`. For repetitions that differ, the value lists all.
Json settings_to_json(const ModelGroup& group) {
  std::vector<Settings> all;
  std::map<std::string, int> keys;
  for (const Contender& contender : group.contenders) {
    all.push_back(list_settings(contender));
    for (const auto& [key, value] : all.back()) ++keys[key];
  }
  Json list = Json::array();
  for (const auto& [key, count] : keys) list.push_back(setting_to_json(key, all));
  return list;
}

}  // namespace

StepPoints thin_series(const RunResult& result, const std::vector<double>& series) {
  StepPoints points;
  points.recorded = series.size();
  if (series.size() <= k_max_drawn_points) {
    for (size_t i = 0; i < series.size(); ++i) add_point(result, series, i, points);
    return points;
  }
  constexpr size_t k_buckets = k_max_drawn_points / 2;
  for (size_t bucket = 0; bucket < k_buckets; ++bucket)
    for (const size_t at :
         find_extremes(series, bucket * series.size() / k_buckets, (bucket + 1) * series.size() / k_buckets, INFINITY))
      add_point(result, series, at, points);
  return points;
}

Json page_to_json(const Comparison& comparison) {
  Json page = comparison_to_json(comparison);
  FindingList findings;
  for (size_t g = 0; g < comparison.groups.size(); ++g) {
    const ModelGroup& group = comparison.groups[g];
    Json& json = page["groups"][g];
    for (size_t c = 0; c < group.contenders.size(); ++c) {
      Json& contender = json["contenders"][c];
      contender["findings"] = findings.refer(contender["findings"]);
      add_measurements(group.contenders[c], contender);
    }
    shorten_pairs(json["pairs"], findings);
    json["settings"] = settings_to_json(group);
  }
  page["findings"] = findings.take();
  page["metrics"] = metrics_to_json();
  return page;
}

}  // namespace tprimat::results
