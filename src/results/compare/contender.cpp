#include "compare/contender.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "compare/copies.h"
#include "compare/expert_facts.h"
#include "compare/figure_meanings.h"
#include "compare/versions.h"
#include "result/summary.h"
#include "stats/descriptive.h"
#include "stats/mean_estimate.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat::results {
namespace {

std::string file_stem(const std::string& path) { return std::filesystem::path(path).stem().string(); }

// Without the whole ".log.json", the ending of results from logs.
std::string log_stem(const std::string& path) {
  const std::filesystem::path stem = file_stem(path);
  for (const char* ending : {".log", ".txt", ".out", ".err"})
    if (stem.extension() == ending) return stem.stem().string();
  return stem.string();
}

// Facts that a file lacks, as one of an earlier version, are not a difference.
template <class T>
bool may_agree(const std::optional<T>& a, const std::optional<T>& b) {
  return !a || !b || *a == *b;
}

std::optional<std::string> unless_blank(std::string text) {
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

// Number of known facts of device and settings, of one run or of all runs of a participant.
struct Setup {
  std::optional<std::string> device, layout, recompute;
  std::optional<int64_t> tokens_per_step, micro_batch_size, zero_stage;
  std::optional<ModelSpec> shape;
};

Setup setup_of(const RunResult& run) {
  const TrainingConfig& training = run.training_config;
  return {unless_blank(run.gpu_info.device_name),
          unless_blank(describe_layout(run)),
          training.recompute,
          training.tokens_per_step,
          training.micro_batch_size,
          run.parallelism_config.zero_stage,
          run.model_info.shape};
}

bool is_same_setup(const Setup& a, const Setup& b) {
  return may_agree(a.device, b.device) && may_agree(a.layout, b.layout) && may_agree(a.recompute, b.recompute) &&
         may_agree(a.tokens_per_step, b.tokens_per_step) && may_agree(a.micro_batch_size, b.micro_batch_size) &&
         may_agree(a.zero_stage, b.zero_stage) && may_agree(a.shape, b.shape);
}

void fill_in(Setup& known, const Setup& more) {
  const auto fill = [](auto& fact, const auto& other) {
    if (!fact) fact = other;
  };
  fill(known.device, more.device), fill(known.layout, more.layout), fill(known.recompute, more.recompute);
  fill(known.tokens_per_step, more.tokens_per_step), fill(known.micro_batch_size, more.micro_batch_size);
  fill(known.zero_stage, more.zero_stage), fill(known.shape, more.shape);
}

// Matching names are not enough: files of other work or devices are separate participants.
bool does_same_work(const RunResult& a, const RunResult& b) {
  const auto work = [](const RunResult& run) {
    return std::tuple(run.platform, run.framework, run.precision, run.training_config.global_batch_size,
                      run.training_config.sequence_length, device_count(run), run.parallelism_config.strategy_name,
                      run.dataset, run.config_hash, run.framework_installation);
  };
  return work(a) == work(b);
}

std::string base_label(const Contender& contender) {
  const RunResult& run = contender.first();
  return (run.platform ? std::string(display_name(*run.platform)) : "unknown platform") +
         (run.framework       ? " " + std::string(display_name(*run.framework))
          : run.source.format ? " " + *run.source.format
                              : "");
}

template <class T>
std::string text_of(const std::optional<T>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "";
}

// Facts that may distinguish two participants, the most informative first.
using Distinction = std::function<std::string(const Contender&)>;
const std::vector<Distinction>& distinctions() {
  static const std::vector<Distinction> list = {
      [](const Contender& c) { return c.first().parallelism_config.strategy_name.value_or(""); },
      [](const Contender& c) { return c.first().precision ? std::string(enum_name(*c.first().precision)) : ""; },
      [](const Contender& c) { return text_of(c.first().training_config.global_batch_size, "GBS {}"); },
      [](const Contender& c) { return text_of(c.first().training_config.sequence_length, "SL {}"); },
      [](const Contender& c) { return c.first().gpu_info.device_name; },
      [](const Contender& c) { return text_of(device_count(c.first()), "{} devices"); },
      [](const Contender& c) { return framework_version_of(c.first()).value_or(""); },
      [](const Contender& c) { return c.first().dataset.value_or(""); },
      [](const Contender& c) { return file_stem(c.runs.front().path); },
      [](const Contender& c) { return std::filesystem::path(c.runs.front().path).parent_path().filename().string(); },
  };
  return list;
}

// Adds `distinction` to labels that several participants share, where it differs among those.
void apply_distinction(std::vector<Contender>& contenders, const Distinction& distinction) {
  std::unordered_map<std::string, std::vector<size_t>> by_label;
  for (size_t i = 0; i < contenders.size(); ++i) by_label[contenders[i].label].push_back(i);
  for (const auto& [label, members] : by_label) {
    if (members.size() < 2) continue;
    std::vector<std::string> words;
    for (const size_t i : members) words.push_back(distinction(contenders[i]));
    if (std::ranges::adjacent_find(words, std::not_equal_to<>()) == words.end()) continue;
    for (size_t k = 0; k < members.size(); ++k)
      if (!words[k].empty()) contenders[members[k]].label += " " + words[k];
  }
}

// Of a mean over runs: Student's interval, in logarithms of the distance from the least possible value, so that it
// stays above that. A run at the least value has no logarithm.
Estimate mean_of_runs(const std::vector<double>& values, const PossibleRange& range) {
  const double n = static_cast<double>(values.size()), deviation = stddev(values);
  const MeanEstimate estimate{mean(values), deviation * deviation / n, n - 1};
  if (std::ranges::any_of(values, [&](double value) { return value <= range.least; })) {
    const Interval interval = student_interval(estimate);
    return {estimate.value, interval.low, interval.high};
  }
  MeanEstimate distance = estimate;
  distance.value -= range.least;
  const Interval interval = positive_interval(distance);
  return {estimate.value, interval.low + range.least, interval.high + range.least};
}

Estimate harmonic_mean_of_runs(std::vector<double> values, const PossibleRange& range) {
  if (std::ranges::any_of(values, [](double value) { return value <= 0; })) return mean_of_runs(values, range);
  for (double& value : values) value = 1 / value;
  const Estimate inverse = mean_of_runs(values, {});
  return {1 / inverse.value, 1 / *inverse.high, 1 / *inverse.low};
}

// By name, so that the order of the files on the command line does not matter; _r2 before _r10.
void sort_repetitions(std::vector<LoadedRun>& runs) {
  std::ranges::sort(runs, [](const LoadedRun& a, const LoadedRun& b) {
    return std::pair(a.path.size(), a.path) < std::pair(b.path.size(), b.path);
  });
}

template <class T>
void append_bytes(std::string& text, const std::vector<T>& values) {
  text += std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// Model, batch and precision define the work; a name adds nothing.
TrainingConfig without_names(TrainingConfig config) {
  config.parallel_strategy.reset();
  return config;
}

}  // namespace

std::string file_name(const LoadedRun& run) { return std::filesystem::path(run.path).filename().string(); }

std::string repetition_key(const std::string& path) {
  const std::string stem = log_stem(path);
  const size_t mark = stem.rfind("_r");
  const std::string folder = std::filesystem::path(path).parent_path().string() + "/";
  const bool numbered = mark != std::string::npos && mark + 2 < stem.size() &&
                        std::all_of(stem.begin() + static_cast<std::ptrdiff_t>(mark) + 2, stem.end(),
                                    [](unsigned char c) { return std::isdigit(c); });
  return numbered ? folder + stem.substr(0, mark) : path;
}

std::vector<Contender> gather_contenders(std::vector<LoadedRun> runs) {
  std::vector<Contender> contenders;
  std::vector<Setup> setups;
  std::multimap<std::string, size_t> by_key;
  for (LoadedRun& run : runs) {
    const std::string key = repetition_key(run.path);
    const auto [begin, end] = by_key.equal_range(key);
    const Setup setup = setup_of(run.result);
    const auto found = std::find_if(begin, end, [&](const auto& each) {
      return does_same_work(contenders[each.second].first(), run.result) && is_same_setup(setups[each.second], setup);
    });
    const size_t index = found == end ? contenders.size() : found->second;
    if (found == end) by_key.emplace(key, index), contenders.emplace_back(), setups.emplace_back();
    fill_in(setups[index], setup);
    contenders[index].runs.push_back(std::move(run));
  }
  for (Contender& contender : contenders) {
    sort_repetitions(contender.runs);
    set_copies_aside(contender);
    contender.distinct = distinct_runs(contender);
  }
  return contenders;
}

void name_contenders(std::vector<Contender>& contenders) {
  for (size_t i = 0; i < contenders.size(); ++i) {
    contenders[i].letter = i < 26 ? std::string(1, static_cast<char>('A' + i)) : fmt::format("{}", i + 1);
    contenders[i].label = base_label(contenders[i]);
  }
  label_versions(contenders);
  for (const Distinction& distinction : distinctions()) apply_distinction(contenders, distinction);
}

std::optional<Estimate> read_figure(const Contender& contender, const Metric& metric) {
  std::vector<Estimate> estimates;
  std::optional<double> most;
  for (const LoadedRun& run : contender.runs) {
    const auto estimate = metric.read(run.result);
    if (!estimate) continue;
    estimates.push_back(*estimate);
    if (!metric.share.empty()) most = std::max(most, whole_of(estimate, find_metric(metric.share)->read(run.result)));
  }
  return combine_runs(estimates, metric, most);
}

std::optional<Estimate> combine_runs(const std::vector<Estimate>& of_runs, const Metric& metric,
                                     std::optional<double> most) {
  std::vector<Estimate> estimates;
  std::vector<double> values;
  for (Estimate estimate : of_runs) {
    if (!std::isfinite(estimate.value)) continue;
    if (!std::isfinite(estimate.low.value_or(0)) || !std::isfinite(estimate.high.value_or(0)))
      estimate.low.reset(), estimate.high.reset();
    estimates.push_back(estimate);
    values.push_back(estimate.value);
  }
  if (estimates.empty()) return std::nullopt;
  const PossibleRange range{metric.range.least, std::min(most.value_or(metric.range.most), metric.range.most)};
  if (estimates.size() < 2) return limit_interval(estimates.front(), range);
  return limit_interval(metric.relation == StepRelation::inverse ? harmonic_mean_of_runs(values, metric.range)
                                                                 : mean_of_runs(values, metric.range),
                        range);
}

std::optional<RateRange> find_disagreement(const Contender& contender) {
  constexpr double k_worth_telling = 0.05;
  RateRange range;
  for (const LoadedRun& run : contender.runs) {
    const auto& rate = run.result.derived.tokens_per_second;
    if (!rate || !(rate->value > 0)) return std::nullopt;
    range.low = range.low > 0 ? std::min(range.low, rate->value) : rate->value;
    range.high = std::max(range.high, rate->value);
  }
  return range.high - range.low > k_worth_telling * range.low ? std::optional(range) : std::nullopt;
}

std::string RateRange::text() const { return fmt::format("{} to {} tokens/s", format_count(low), format_count(high)); }

std::string describe_layout(const RunResult& result) {
  const ParallelismConfig& p = result.parallelism_config;
  std::string text;
  const auto add = [&](const char* name, const std::optional<int64_t>& size) {
    if (size) text += fmt::format("{}{}{}", text.empty() ? "" : " ", name, *size);
  };
  add("TP", p.tensor_model_parallel_size);
  add("PP", p.pipeline_model_parallel_size);
  add("DP", p.data_parallel_size);
  if (p.context_parallel_size.value_or(1) != 1) add("CP", p.context_parallel_size);
  if (p.expert_model_parallel_size.value_or(1) != 1) add("EP", p.expert_model_parallel_size);
  if (p.expert_tensor_parallel_size.value_or(1) != 1) add("ETP", p.expert_tensor_parallel_size);
  return text;
}

std::string describe_device(const RunResult& result) {
  const std::string name = result.gpu_info.device_name.empty() ? "unknown device" : result.gpu_info.device_name;
  const auto count = device_count(result);
  return count && *count != 1 ? fmt::format("{} x {}", *count, name) : name;
}

std::string state_work(const RunResult& result) {
  RunResult facts;
  facts.model_info = result.model_info;
  facts.precision = result.precision;
  facts.training_config = without_names(result.training_config);
  for (auto* figure : {&facts.training_config.seed, &facts.training_config.num_gpus,
                       &facts.training_config.micro_batch_size, &facts.training_config.max_steps})
    figure->reset();
  facts.training_config.recompute.reset();
  if (const auto routing = routing_of(result)) facts.experts.emplace().routing = routing;
  std::string text = print_json_line(to_json(facts));
  append_bytes(text, result.learning_rates);
  if (result.steps && result.steps->numbers) append_bytes(text, *result.steps->numbers);
  return text;
}

// The same plus everything else that the rules for two runs read: data, devices, layout, versions, settings, how memory
// and energy were measured, price and peak. Excludes figures that differ from run to run.
static std::string state_facts(const RunResult& result) {
  RunResult facts;
  facts.platform = result.platform;
  facts.framework = result.framework;
  facts.framework_installation = result.framework_installation;
  facts.framework_version = result.framework_version;
  facts.dataset = result.dataset;
  facts.gpu_info = result.gpu_info;
  facts.training_config = without_names(result.training_config);
  facts.parallelism_config = result.parallelism_config;
  if (const auto dispatcher = dispatcher_of(result)) facts.experts.emplace().dispatcher = dispatcher;
  facts.effective_config = result.effective_config;
  for (const auto& [key, value] : result.environment)
    if (key.ends_with("driver") || key == "container_image") facts.environment[key] = value;
  return state_work(result) + print_json_line(to_json(facts)) + state_meanings(result);
}

std::vector<size_t> distinct_runs(const Contender& contender) {
  if (!contender.distinct.empty()) return contender.distinct;
  std::vector<size_t> distinct;
  std::set<std::string> stated;
  for (size_t i = 0; i < contender.runs.size(); ++i)
    if (contender.runs.size() == 1 || stated.insert(state_facts(contender.runs[i].result)).second)
      distinct.push_back(i);
  return distinct;
}

}  // namespace tprimat::results
