#include "result/result_file.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "result/summary.h"
#include "result/upgrade.h"
#include "stats/descriptive.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat {
namespace {

// A file's own throughput against what its step times say. They differ when one of them was edited, or warm-up was
// averaged in.
void cross_check(RunResult& result, const PerformanceMetrics& stored) {
  const auto& derived = result.derived.tokens_per_second;
  if (!stored.tokens_per_second || !derived || derived->value <= 0) return;
  const double deviation = *stored.tokens_per_second / derived->value - 1;
  if (std::fabs(deviation) <= 0.01) return;
  add_warning(result, fmt::format("the file says {} tokens/s, its step times say {}: the latter is used",
                                  format_count(*stored.tokens_per_second), format_count(derived->value)));
}

// Tokens of one step as the file's own averages imply them, where they deny its batch and sequence length.
std::optional<double> contradicting_tokens_per_step(const RunResult& result, const PerformanceMetrics& stored) {
  const auto stated = tokens_per_step(result);
  if (!stated || !stored.tokens_per_second || !stored.avg_step_time_seconds) return std::nullopt;
  const double implied = *stored.tokens_per_second * *stored.avg_step_time_seconds;
  if (std::fabs(implied / static_cast<double>(*stated) - 1) <= 0.05) return std::nullopt;
  return implied;
}

// The trainer's own rate was measured on what it really did; the batch may have been typed in beside it. So the rate
// stays, and the contradiction is on record for the audit, which lets no such run win.
void record_contradiction(RunResult& result, const PerformanceMetrics& stored, double implied) {
  const auto stated = static_cast<double>(*tokens_per_step(result));
  result.config_audit.push_back({"tokens_per_step", format_count(stated), format_count(implied)});
  add_warning(
      result,
      fmt::format(
          "the file contradicts itself: {} tokens/s at {} per step are {} tokens per step, but global batch x sequence "
          "length is {} ({:.2f}x); its own rate is shown, without an interval",
          format_count(*stored.tokens_per_second), format_duration(*stored.avg_step_time_seconds),
          format_count(implied), format_count(stated), implied / stated));
}

// Older files may hold only averages: they are shown without an interval.
void adopt_stored_rates(RunResult& result, const PerformanceMetrics& stored) {
  result.derived.tokens_per_second.reset();
  result.derived.tokens_per_second_per_gpu.reset();
  if (stored.tokens_per_second) result.derived.tokens_per_second = Estimate{*stored.tokens_per_second, {}, {}};
  if (stored.tokens_per_second_per_gpu)
    result.derived.tokens_per_second_per_gpu = Estimate{*stored.tokens_per_second_per_gpu, {}, {}};
  result.performance_metrics->tokens_per_second = stored.tokens_per_second;
  result.performance_metrics->tokens_per_second_per_gpu = stored.tokens_per_second_per_gpu;
}

void summarise_older_result(RunResult& result, const std::optional<PerformanceMetrics>& stored) {
  summarise_run(result, stored_options(result));
  if (!stored) return;
  if (const auto implied = contradicting_tokens_per_step(result, *stored)) {
    record_contradiction(result, *stored, *implied);
    adopt_stored_rates(result, *stored);
  } else {
    cross_check(result, *stored);
  }
}

void complete_older_result(RunResult& result) {
  const auto stored = result.performance_metrics;
  if (!result.step_times.empty()) {
    summarise_older_result(result, stored);
  } else if (stored && result.status == RunStatus::complete) {
    adopt_stored_rates(result, *stored);
    add_warning(result, "the file holds no step times: its own averages are shown, without an interval");
  }
}

bool is_off(double figure, double expected) { return !(std::fabs(figure / expected - 1) <= 0.01); }

// False for a file whose figures were edited or lost, so that they no longer say what its own steps say.
bool follows_from_steps(const RunResult& result) {
  const std::vector<double> steady = steady_step_times(result);
  if (steady.empty()) return true;
  const double seconds = mean(steady);
  if (is_off(result.statistics->mean, seconds)) return false;
  const auto tokens = tokens_per_step(result), devices = device_count(result);
  if (!tokens) return true;
  const double rate = static_cast<double>(*tokens) / seconds;
  const Derived& derived = result.derived;
  if (!derived.tokens_per_second || is_off(derived.tokens_per_second->value, rate)) return false;
  return !devices || (derived.tokens_per_second_per_gpu &&
                      !is_off(derived.tokens_per_second_per_gpu->value, rate / static_cast<double>(*devices)));
}

// A rate of its own that was adopted with its contradiction on record (see above) stands.
bool is_contradiction_recorded(const RunResult& result) {
  return std::any_of(result.config_audit.begin(), result.config_audit.end(),
                     [](const AuditEntry& entry) { return entry.key == "tokens_per_step"; });
}

// Figures that an earlier version of a formula made are not compared with those of today's.
bool uses_other_formulas(const RunResult& result) {
  const auto& stored = result.derived.flops_per_token;
  if (stored.empty()) return false;
  return std::any_of(std::begin(EnumNames<FlopFormula>::values), std::end(EnumNames<FlopFormula>::values),
                     [&](const auto& each) { return stored.count(formula_id(each.first)) == 0; });
}

void derive_by_known_formulas(RunResult& result) {
  const std::string stored = result.derived.headline_formula;
  summarise_run(result, stored_options(result));
  add_warning(result, fmt::format("FLOPs were counted by formula {}, which this program no longer uses: counted again by {}",
                                  printable(stored), result.derived.headline_formula));
}

void check_stored_figures(RunResult& result) {
  if (uses_other_formulas(result) && !is_contradiction_recorded(result)) derive_by_known_formulas(result);
  if (is_contradiction_recorded(result) || follows_from_steps(result)) return;
  summarise_run(result, stored_options(result));
  add_warning(result, "the file's figures do not follow from its step times: they were derived from these again");
}

// A name out of a log must not choose the folder.
std::string file_word(std::string word) {
  for (char& c : word)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_') c = '_';
  return word;
}

}  // namespace

Json run_result_to_json(const RunResult& result) {
  Json json = to_json(result);
  if (!result.platform) json["platform"] = nullptr;  // said to be unknown: a file without the key was cut
  return json;
}

RunResult run_result_from_json(const Json& json, const std::string& file_name) {
  std::vector<std::string> notes;
  RunResult result = from_json<RunResult>(upgrade_result(json, file_name, notes), file_name);
  for (const std::string& note : notes) add_warning(result, note);
  if (result.statistics)
    check_stored_figures(result);
  else
    complete_older_result(result);
  check_validity(result);
  return result;
}

void write_run_result(const std::filesystem::path& path, const RunResult& result, Survives survives) {
  write_file_atomically(path, print_json(run_result_to_json(result)), survives);
}

RunResult load_run_result(const std::filesystem::path& path) {
  const Json json = parse_json(read_file(path), path.string());
  try {
    return run_result_from_json(json, path.filename().string());
  } catch (const Error& error) {
    Problem problem = error.problems().front();
    problem.where = path.parent_path().empty() || problem.where.empty() ? path.string()
                                                                        : (path.parent_path() / problem.where).string();
    throw Error(std::move(problem), error.status());
  }
}

std::string result_file_name(const RunResult& result, const ResultNaming& naming) {
  std::string name =
      fmt::format("train_{}_{}_{}", result.platform ? enum_name(*result.platform) : "unknown",
                  result.framework ? enum_name(*result.framework) : result.source.format.value_or("unknown"),
                  result.model_info.name.empty() ? "unknown" : file_word(result.model_info.name));
  for (const std::string& part : {naming.strategy, naming.dataset})
    if (!part.empty()) name += '_' + file_word(part);
  if (naming.run > 0) name += fmt::format("_r{}", naming.run);
  return name + ".json";
}

}  // namespace tprimat
