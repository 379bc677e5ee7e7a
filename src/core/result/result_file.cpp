#include "result/result_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "result/consistency.h"
#include "result/peak.h"
#include "result/run_result.h"
#include "result/summary.h"
#include "stats/mean_estimate.h"
#include "text/fast_json.h"
#include "text/format.h"
#include "text/json_fields.h"
#include "text/json_object_printer.h"
#include "text/json_schema.h"

namespace tprimat {
namespace {

// A file's own throughput against what its step times say. They differ if one of them was edited or the average
// includes the warm-up.
void cross_check(RunResult& result, const PerformanceMetrics& stored) {
  const auto& derived = result.derived.tokens_per_second;
  if (!stored.tokens_per_second || !derived || derived->value <= 0) return;
  const double deviation = *stored.tokens_per_second / derived->value - 1;
  if (std::fabs(deviation) <= 0.01) return;
  add_warning(result, fmt::format("the file states {} tokens/s, but its step times give {}: the latter is used",
                                  format_count(*stored.tokens_per_second), format_count(derived->value)));
}

// Tokens of one step as implied by the file's own averages, if these contradict its batch and sequence length.
std::optional<double> contradicting_tokens_per_step(const RunResult& result, const PerformanceMetrics& stored) {
  const auto stated = tokens_per_step(result);
  if (!stated || !stored.tokens_per_second || !stored.avg_step_time_seconds) return std::nullopt;
  const double implied = *stored.tokens_per_second * *stored.avg_step_time_seconds;
  if (std::fabs(implied / static_cast<double>(*stated) - 1) <= 0.05) return std::nullopt;
  return implied;
}

// The trainer measured its rate on the real work; the batch may have been entered by hand. So the rate stays, with the
// spread of its steps, and the contradiction is recorded for the audit, which lets no such run win.
void record_contradiction(RunResult& result, const PerformanceMetrics& stored, double implied) {
  const auto stated = static_cast<double>(*tokens_per_step(result));
  result.config_audit.push_back({"tokens_per_step", format_count(stated), format_count(implied)});
  add_warning(
      result,
      fmt::format(
          "the file contradicts itself: {} tokens/s at {} per step are {} tokens per step, but global batch x sequence "
          "length is {} ({:.2f}x); its own rate is shown",
          format_count(*stored.tokens_per_second), format_duration(*stored.avg_step_time_seconds),
          format_count(implied), format_count(stated), implied / stated));
}

// The interval of `derived` around another value: the spread of the steps does not depend on their work.
Estimate around(double value, const std::optional<Estimate>& derived) {
  Estimate estimate{value, {}, {}};
  if (derived && derived->low && derived->high && derived->value > 0)
    estimate.low = value * *derived->low / derived->value, estimate.high = value * *derived->high / derived->value;
  return estimate;
}

// Older files may hold only averages: without steps they are shown without an interval.
void adopt_stored_rates(RunResult& result, const PerformanceMetrics& stored) {
  const Derived derived = std::exchange(result.derived, Derived{});
  result.derived.flops_per_token = derived.flops_per_token;
  result.derived.peak = derived.peak;
  if (stored.tokens_per_second)
    result.derived.tokens_per_second = around(*stored.tokens_per_second, derived.tokens_per_second);
  if (stored.tokens_per_second_per_gpu)
    result.derived.tokens_per_second_per_gpu =
        around(*stored.tokens_per_second_per_gpu, derived.tokens_per_second_per_gpu);
  result.performance_metrics->tokens_per_second = stored.tokens_per_second;
  result.performance_metrics->tokens_per_second_per_gpu = stored.tokens_per_second_per_gpu;
}

void summarise_older_result(RunResult& result, const std::optional<PerformanceMetrics>& stored) {
  SummaryOptions options = stored_options(result);
  if (!options.peak && result.precision) options.peak = catalogue_peak(result.gpu_info.device_name, *result.precision);
  summarise_run(result, options);
  result.contradictions = find_older_contradictions(result, stored.value_or(PerformanceMetrics()));
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
  } else if (stored && result.status == RunStatus::complete && (!result.time_to_train || stored->tokens_per_second)) {
    result.contradictions = find_older_contradictions(result, *stored);
    if (const auto implied = contradicting_tokens_per_step(result, *stored))
      record_contradiction(result, *stored, *implied);
    adopt_stored_rates(result, *stored);
    add_warning(result, "the file has no step times: its own averages are shown, without an interval");
  }
}

// Whether the file lacks a figure that follows from its other fields.
bool lacks_figures(const RunResult& result) {
  const Derived& derived = result.derived;
  if (steady_step_times(result).empty() || !tokens_per_step(result)) return false;
  return !derived.tokens_per_second || (device_count(result) && !derived.tokens_per_second_per_gpu);
}

// A file's own rate whose contradiction is recorded (see above) stays; the audit lets no such run win.
bool is_contradiction_recorded(const RunResult& result) {
  return std::any_of(result.config_audit.begin(), result.config_audit.end(),
                     [](const AuditEntry& entry) { return entry.key == "tokens_per_step" && entry.asked; });
}

// Figures of an earlier version of a formula are not compared with those of today's.
bool uses_other_formulas(const RunResult& result) {
  const auto& stored = result.derived.flops_per_token;
  if (stored.empty()) return false;
  return std::any_of(std::begin(EnumNames<FlopFormula>::values), std::end(EnumNames<FlopFormula>::values),
                     [&](const auto& each) { return stored.count(formula_id(each.first)) == 0; });
}

void derive_by_known_formulas(RunResult& result) {
  const std::string stored = result.derived.headline_formula;
  summarise_run(result, stored_options(result));
  add_warning(result,
              fmt::format("FLOPs were counted by formula {}, which this program no longer uses: recounted by {}",
                          printable(stored), result.derived.headline_formula));
}

bool uses_other_intervals(const RunResult& result) {
  return result.statistics && result.statistics->ci95_low && result.statistics->interval_method != k_interval_method;
}

bool is_other_interval(const StepStatistics& a, const StepStatistics& b) {
  constexpr double k_tolerance = 1e-3;  // of the mean; files may round
  const auto differs = [&](const std::optional<double>& one, const std::optional<double>& other) {
    return one.has_value() != other.has_value() || (one && !(std::fabs(*one - *other) <= k_tolerance * b.mean));
  };
  return differs(a.ci95_low, b.ci95_low) || differs(a.ci95_high, b.ci95_high);
}

// Older files do not name the method, but most have today's intervals: no warning for those.
void derive_by_known_intervals(RunResult& result) {
  const StepStatistics stored = *result.statistics;
  summarise_run(result, stored_options(result));
  if (!stored.interval_method && result.statistics && !is_other_interval(stored, *result.statistics)) return;
  add_warning(result, fmt::format("the intervals were computed by {}, which this program {}; they are recomputed by {}",
                                  stored.interval_method ? "method " + printable(*stored.interval_method)
                                                         : "a method not named in the file",
                                  stored.interval_method ? "does not use" : "cannot identify", k_interval_method));
}

// Figures that contradict the file's own inputs are derived again; the contradictions stay on record for the audit.
void check_stored_figures(RunResult& result) {
  if (is_contradiction_recorded(result)) return;
  result.contradictions = find_contradictions(result);
  using Kind = Contradiction::Kind;  // layout and printed settings contradict no figure
  const bool off = std::any_of(result.contradictions.begin(), result.contradictions.end(), [](const auto& each) {
    return each.kind == Kind::rate || each.kind == Kind::figure || each.kind == Kind::shape;
  });
  if (uses_other_intervals(result)) derive_by_known_intervals(result);
  if (uses_other_formulas(result)) derive_by_known_formulas(result);
  if (!off && !lacks_figures(result)) return;
  if (result.derived.peak)
    if (const auto known = catalogue_value(*result.derived.peak)) result.derived.peak->flops_per_second = *known;
  summarise_run(result, stored_options(result));
  add_warning(result, "the file's figures do not follow from its step times and facts; they are recomputed");
}

void complete_result(RunResult& result) {
  if (result.statistics)
    check_stored_figures(result);
  else
    complete_older_result(result);
  check_validity(result);
}

// A text that does not begin as a JSON object is most often a log.
Json parse_result_json(const std::string& text, const std::string& path) {
  try {
    return parse_json(text, path);
  } catch (const Error& error) {
    const size_t start = text.find_first_not_of(" \t\r\n");
    if (start == std::string::npos || text[start] == '{') throw;
    Problem problem = error.problems().front();
    problem.hint = fmt::format("if it is a log: tprimat extract {}", quote_shell(path));
    throw Error(std::move(problem), error.status());
  }
}

// A name from a log must not choose the folder.
std::string file_word(std::string word) {
  for (char& c : word)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_') c = '_';
  return word;
}

// A parser keeps its buffers from file to file.
simdjson::dom::parser& parser_of_thread(size_t bytes) {
  constexpr size_t k_deepest_nesting = 200;  // as parse_json
  thread_local simdjson::dom::parser parser;
  thread_local const bool ready =
      parser.allocate(std::max<size_t>(bytes, 1 << 16), k_deepest_nesting) == simdjson::SUCCESS;
  (void)ready;
  return parser;
}

bool is_current(const simdjson::dom::object& object) {
  const auto flat_experts = object["model_info"]["shape"]["num_experts"];  // see has_flat_experts
  if (flat_experts.error() == simdjson::SUCCESS && !flat_experts.is_null()) return false;
  int64_t version = 0;
  return object["schema_version"].get(version) == simdjson::SUCCESS && version == k_schema_version &&
         object["platform"].error() == simdjson::SUCCESS && object["status"].error() == simdjson::SUCCESS &&
         object["step_times"].error() == simdjson::SUCCESS;
}

}  // namespace

Json run_result_to_json(const RunResult& result) {
  Json json = to_json(result);
  if (!result.platform) json["platform"] = nullptr;  // said to be unknown: a file without the key was cut
  return json;
}

namespace {

// A series of a long run goes into the text without becoming a Json.
template <class Member>
void print_member(JsonObjectPrinter& printer, std::string_view key, const Member& member) {
  if constexpr (std::is_same_v<Member, std::vector<double>>) {
    printer.add(key, std::span(member));
  } else if constexpr (std::is_same_v<Member, ReportedFigures>) {
    printer.open(key);
    for_each_field<Member>([&](const auto& each) { print_member(printer, each.key, member.*each.member); });
    printer.close();
  } else if constexpr (OptionalValue<Member>) {
    if (member) print_member(printer, key, *member);
  } else {
    printer.add(key, to_json(member));
  }
}

// Text to set aside for the series: what is not used costs nothing.
size_t estimate_bytes(const RunResult& result) {
  constexpr size_t k_series = 8, k_bytes_of_number = 12;
  return result.step_times.size() * k_series * k_bytes_of_number;
}

// As print_json(run_result_to_json(result)).
std::string print_run_result(const RunResult& result) {
  JsonObjectPrinter printer(estimate_bytes(result));
  for_each_field<RunResult>([&](const auto& each) { print_member(printer, each.key, result.*each.member); });
  if (!result.platform) printer.add("platform", nullptr);
  return std::move(printer).finish();
}

}  // namespace

RunResult run_result_from_json(const Json& json, const std::string& file_name) {
  std::vector<std::string> notes;
  RunResult result = from_json<RunResult>(upgrade_result(json, file_name, notes), file_name);
  for (const std::string& note : notes) add_warning(result, note);
  complete_result(result);
  return result;
}

void write_run_result(const std::filesystem::path& path, const RunResult& result, Survives survives) {
  write_file_atomically(path, print_run_result(result), survives);
}

RunResult load_run_result(const std::filesystem::path& path) { return read_run_result(read_file(path), path); }

RunResult read_run_result(const std::string& text, const std::filesystem::path& path) {
  if (auto current = read_current_result(text)) {
    complete_result(*current);
    return std::move(*current);
  }
  const Json json = parse_result_json(text, path.string());
  try {
    return run_result_from_json(json, path.filename().string());
  } catch (const Error& error) {
    Problem problem = error.problems().front();
    problem.where = problem.where.empty() ? path.string() : (path.parent_path() / problem.where).string();
    throw Error(std::move(problem), error.status());
  }
}

std::optional<RunResult> complete_plain_result(const std::filesystem::path& path) {
  constexpr uintmax_t k_max_bytes = 256 << 20;  // of ten million steps
  std::error_code unreadable;
  const bool is_small = std::filesystem::file_size(path, unreadable) <= k_max_bytes && !unreadable;
  if (path.extension() != ".json" || !is_small) return std::nullopt;
  const std::string text = read_file(path);
  const auto stored = read_current_result(text);
  if (!stored || stored->statistics || stored->step_times.empty()) return std::nullopt;
  return read_run_result(text, path);
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

std::string print_schema() {
  const SchemaHead head{
      "result.schema.json", "TensorPrimat result",
      "One training run, from launch to exit. A figure that is not known is absent or null, never 0."};
  Json fields = json_schema<RunResult>();
  fields["properties"]["schema_version"] = {{"const", k_schema_version}, {"description", "version of this schema"}};
  fields["properties"]["platform"]["enum"].push_back(nullptr);  // a log that does not say
  fields["required"].push_back("platform");
  return print_json(name_types(head, std::move(fields), Further::allowed));
}

std::optional<RunResult> read_current_result(std::string_view text) {
  simdjson::dom::object object;
  FastElement root;
  if (parser_of_thread(text.size()).parse(text.data(), text.size()).get(root) != simdjson::SUCCESS) return std::nullopt;
  if (root.get(object) != simdjson::SUCCESS || !is_current(object)) return std::nullopt;
  std::optional<RunResult> result(std::in_place);
  if (!read_fast(root, *result)) return std::nullopt;
  return result;
}

}  // namespace tprimat
