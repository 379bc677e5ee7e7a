#include "run/gathered_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "config/variables.h"
#include "extract/read_log.h"
#include "extract/to_result.h"
#include "result/result_file.h"
#include "run/log_names.h"
#include "run/model_identity.h"
#include "text/format.h"
#include "text/words.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

constexpr size_t k_max_opened = 200;                 // logs, the newest first
constexpr int64_t k_head_bytes = int64_t{64} << 20;  // of a log, to tell what it is
constexpr double k_slack_of_series_seconds = 3600;   // an event file is written longer than the console log

// The logs whose results lie in the output folder.
class KnownResults {
 public:
  explicit KnownResults(const fs::path& folder) {
    constexpr size_t k_max_results = 2000;
    constexpr uintmax_t k_max_bytes = uintmax_t{64} << 20;
    std::error_code error;
    for (fs::directory_iterator each(folder, error);
         !error && each != fs::directory_iterator() && read_ < k_max_results; each.increment(error)) {
      std::error_code unreadable;
      if (each->path().extension() == ".json" && each->is_regular_file(unreadable) &&
          each->file_size(unreadable) <= k_max_bytes)
        add(each->path());
    }
  }

  // The result of the log that is newer than it; empty: none.
  std::string find(const fs::path& log) const {
    std::error_code unreadable;
    const auto found = results_.find(fs::weakly_canonical(log, unreadable));
    if (found == results_.end()) return "";
    const auto of_log = fs::last_write_time(log, unreadable),
               of_result = fs::last_write_time(found->second, unreadable);
    return !unreadable && of_result >= of_log ? found->second.string() : "";
  }

 private:
  void add(const fs::path& path) try {
    ++read_;
    const auto result = read_current_result(read_file(path));
    if (!result) return;
    std::error_code unreadable;
    for (const auto& source : {result->source.log, result->source.steps_file})
      if (source) results_.insert_or_assign(fs::weakly_canonical(*source, unreadable), path);
  } catch (const Error&) {  // not a result
  }

  std::map<fs::path, fs::path> results_;
  size_t read_ = 0;
};

// A log whose head was read.
struct Candidate {
  GatheredLog log;
  LogName name;
  std::optional<Framework> framework;
  std::optional<Platform> platform;
  fs::path training;     // that all of its files share
  double unix_time = 0;  // of the newest of them
  double changed = 0;    // the file itself
  std::map<int64_t, double> losses;
  int64_t last_step = 0;

  auto run() const { return std::tuple(log.model, framework, platform, log.behind_model); }
};

void take_steps(Candidate& candidate, const std::vector<logs::ExtractedStep>& steps) {
  for (const logs::ExtractedStep& each : steps) {
    if (each.loss && std::isfinite(*each.loss)) candidate.losses.insert_or_assign(each.step, *each.loss);
    candidate.last_step = std::max(candidate.last_step, each.step);
  }
}

// Two files of one run were written at one time, and report the same losses; without common ones, the same last step.
bool are_of_one_run(const Candidate& a, const Candidate& b) {
  constexpr double k_rounding = 1e-3;  // of printed losses
  if (std::abs(a.changed - b.changed) > k_slack_of_series_seconds) return false;
  bool has_common = false;
  for (const auto& [step, loss] : a.losses) {
    const auto other = b.losses.find(step);
    if (other == b.losses.end()) continue;
    has_common = true;
    if (std::abs(loss - other->second) > k_rounding * std::abs(loss)) return false;
  }
  return has_common || a.last_step == b.last_step;
}

class LogGathering {
 public:
  LogGathering(const LoadedExperiment& configuration, const GatherRequest& request)
      : configuration_(configuration), request_(request), results_(request.output) {
    for (const ModelEntry& entry : configuration.experiment.models) keys_.push_back(entry.spec.name);
  }

  Gathering gather() {
    take_variables();
    for (LogPlace& place : list_log_places(configuration_.experiment, request_.output))
      gathering_.places.push_back(std::move(place));
    LogSearch search = search_logs(gathering_.places, request_.limits);
    no_logs_ = std::move(search.skipped);
    open_all(search.logs);
    adopt_platforms();
    sort_candidates();
    for (Candidate& candidate : candidates_) choose(candidate);
    for (SkippedFile& file : no_logs_) gathering_.passed_over.push_back(std::move(file));  // least of interest
    return std::move(gathering_);
  }

 private:
  void pass_over(const fs::path& path, std::string why) { gathering_.passed_over.push_back({path, std::move(why)}); }

  // A file is a log; a folder is a place of its own.
  void take_variables() {
    std::vector<Problem> problems;
    for (const ModelEntry& entry : configuration_.experiment.models) {
      const std::string variable = log_variable(entry.spec.name);
      gathering_.variables.push_back(variable);
      const auto path = request_.environment.find(variable);
      if (path == request_.environment.end() || path->second.empty()) continue;
      named_models_.insert_or_assign(entry.spec.name, variable);
      std::error_code unreadable;
      if (fs::is_directory(path->second, unreadable))
        gathering_.places.push_back(
            {.name = variable, .folder = path->second, .model = entry.spec.name, .depth = k_depth_of_variable});
      else if (fs::exists(path->second, unreadable))
        take_named(path->second, entry, variable);
      else
        problems.push_back({fmt::format("no such file or folder: {}", path->second), variable,
                            "correct it, or unset it to search the usual places"});
    }
    throw_if_any(std::move(problems));
  }

  void take_named(const fs::path& path, const ModelEntry& entry, const std::string& variable) {
    GatheredLog log;
    log.path = path, log.place = variable, log.model_named_by = variable;
    log.model = entry.spec.name, log.model_because = variable + " names it";
    log.behind_model = name_behind_model(path.filename(), entry);
    log.named = named_facts(parse_log_name(path.filename(), keys_), nullptr);
    std::error_code unreadable;
    named_files_.insert(fs::weakly_canonical(path, unreadable));
    gathering_.taken.push_back(std::move(log));
  }

  static NamedFacts named_facts(const LogName& name, const LogPlace* place) {
    NamedFacts named;
    named.path = name.path, named.platform = name.platform, named.framework = name.framework;
    named.framework_from = "the log's path";
    if (!named.framework && place != nullptr && place->framework)
      named.framework = place->framework, named.framework_from = place->name;
    return named;
  }

  void open_all(const std::vector<FoundLog>& logs) {
    size_t opened = 0;
    for (const FoundLog& found : logs) {
      std::error_code unreadable;
      if (named_files_.contains(fs::weakly_canonical(found.path, unreadable))) continue;
      if (++opened > k_max_opened)
        no_logs_.push_back({found.path, fmt::format("it is not among the {} newest", k_max_opened)});
      else
        open(found);
    }
  }

  void open(const FoundLog& found) try {
    const LogPlace& place = gathering_.places[found.place];
    const logs::ReadLog read = logs::read_log(found.path, {request_.format, k_head_bytes});
    if (read.log.steps.empty()) return no_logs_.push_back({found.path, why_no_log(read)});
    Candidate candidate;
    candidate.name = parse_log_name(found.below, keys_);
    candidate.log.path = found.path;
    candidate.log.place = place.name;
    candidate.training = place.folder / candidate.name.training;
    candidate.log.named = named_facts(candidate.name, &place);
    candidate.changed = found.unix_time;
    take_steps(candidate, read.log.steps);
    candidate.unix_time = found.unix_time - (candidate.name.is_series ? k_slack_of_series_seconds : 0);
    if (identify(candidate, read, place)) candidates_.push_back(std::move(candidate));
  } catch (const Error& error) {
    no_logs_.push_back({found.path, error.problems().front().what});
  }

  static std::string why_no_log(const logs::ReadLog& read) {
    const char* part = read.bytes >= k_head_bytes ? " in its first 64 MiB" : "";
    if (read.dialect == nullptr)
      return fmt::format("no training log{}{}{}", part, read.why_nothing.empty() ? "" : ": ", read.why_nothing);
    const auto& events = read.log.events;
    return fmt::format("it reports no training step{}{}{}", part, events.empty() ? "" : ": ",
                       events.empty() ? "" : events.back().text);
  }

  bool identify(Candidate& candidate, const logs::ReadLog& read, const LogPlace& place) {
    logs::KnownFacts known;
    known.framework = candidate.log.named.framework;
    const RunResult result = logs::make_result(read, candidate.log.path.string(), known);
    candidate.framework = result.framework;
    candidate.platform = result.platform ? result.platform : candidate.name.platform;
    const logs::StatedFacts stated{read.log.facts, read.log.settings};
    const ModelBelief belief =
        identify_model(configuration_, {result, stated, candidate.name.path, place.model, place.name});
    if (belief.entry == nullptr) {
      pass_over(candidate.log.path, belief.because);
      return false;
    }
    candidate.log.model = belief.entry->spec.name;
    candidate.log.model_because = belief.because;
    if (!place.model.empty()) candidate.log.model_named_by = place.name;
    std::string& behind = candidate.log.behind_model;
    behind = name_behind_model(candidate.name.named_by, *belief.entry);
    const auto& claimed = candidate.name.framework;  // the log may exclude it, which keeps two runs apart nevertheless
    if (claimed && candidate.framework && *claimed != *candidate.framework)
      behind = std::string(enum_name(*claimed)) + (behind.empty() ? "" : "_" + behind);
    return true;
  }

  // `tprimat run` leaves a console log, whose name has no platform, and steps.jsonl, whose folder has it: one run.
  void adopt_platforms() {
    std::vector<std::pair<Candidate*, const Candidate*>> adopted;
    for (Candidate& each : candidates_)
      if (!each.platform)
        if (const Candidate* other = find_other_log(each)) adopted.emplace_back(&each, other);
    for (const auto& [each, other] : adopted) {
      each->platform = each->log.named.platform = other->platform;
      each->log.named.platform_from = other->log.path.string();
    }
  }

  // That of the same run which has a platform; none where logs of several platforms fit.
  const Candidate* find_other_log(const Candidate& log) const {
    const auto run_of = [](const Candidate& each) {
      return std::tie(each.log.model, each.framework, each.log.behind_model);
    };
    const Candidate* found = nullptr;
    for (const Candidate& each : candidates_) {
      if (!each.platform || run_of(each) != run_of(log) || !are_of_one_run(each, log)) continue;
      if (found != nullptr && found->platform != each.platform) return nullptr;
      if (found == nullptr) found = &each;
    }
    return found;
  }

  // The newest training first.
  void sort_candidates() {
    std::map<fs::path, double> newest;
    for (const Candidate& each : candidates_) {
      double& time = newest[each.training];
      time = std::max(time, each.unix_time);
    }
    for (Candidate& each : candidates_) each.unix_time = newest[each.training];
    std::ranges::stable_sort(candidates_, [](const Candidate& a, const Candidate& b) {
      return std::tuple(-a.unix_time, a.training, a.name.order()) <
             std::tuple(-b.unix_time, b.training, b.name.order());
    });
  }

  void choose(Candidate& candidate) {
    GatheredLog& log = candidate.log;
    const auto variable = named_models_.find(log.model);
    if (variable != named_models_.end() && log.place != variable->second)
      return pass_over(log.path, fmt::format("{} names the log of {}", variable->second, log.model));
    const auto [newest, is_new] = newest_.try_emplace(candidate.run(), candidate.training, log.path);
    const auto& [training, path] = newest->second;
    if (!is_new && training == candidate.training)
      return pass_over(log.path, fmt::format("of the same training as {}", path.string()));
    if (!is_new)
      return pass_over(log.path, fmt::format("{}{} {}", describe_run(candidate), path.string(),
                                             candidate.name.is_series ? "is newer, or its console log" : "is newer"));
    const std::string result = results_.find(log.path);
    if (!result.empty()) ++gathering_.extracted;
    if (!result.empty())
      return pass_over(log.path, fmt::format("{} is its result; tprimat extract {} reads it again", result,
                                             quote_shell(log.path.string())));
    gathering_.taken.push_back(std::move(log));
  }

  static std::string describe_run(const Candidate& candidate) {
    return fmt::format("of {} with {}, ", candidate.log.model,
                       candidate.framework ? enum_name(*candidate.framework) : "an unknown framework");
  }

  static constexpr int k_depth_of_variable = 3;

  const LoadedExperiment& configuration_;
  const GatherRequest& request_;
  KnownResults results_;
  std::vector<std::string> keys_;  // of the configuration's models
  Gathering gathering_;
  std::map<std::string, std::string> named_models_;  // model -> variable
  std::set<fs::path> named_files_;
  std::vector<Candidate> candidates_;
  std::vector<SkippedFile> no_logs_;
  using Newest = std::pair<fs::path, fs::path>;  // training, and the log of it that was chosen
  std::map<decltype(std::declval<Candidate>().run()), Newest> newest_;
};

}  // namespace

Gathering gather_logs(const LoadedExperiment& configuration, const GatherRequest& request) {
  return LogGathering(configuration, request).gather();
}

std::optional<std::string> gathered_result_name(const Experiment& experiment, const RunResult& result,
                                                const std::string& behind_model) {
  if (!result.platform || result.model_info.name.empty()) return std::nullopt;
  const auto setup = experiment.platforms.find(*result.platform);
  const fs::path path(fill_file_name(
      experiment.result_filename, *result.platform,
      setup == experiment.platforms.end() ? "" : setup->second.software_stack,
      std::string(result.framework ? enum_name(*result.framework) : result.source.format.value_or("unknown")),
      result.model_info.name));
  return path.stem().string() + (behind_model.empty() ? "" : "_" + behind_model) + ".json";
}

}  // namespace tprimat::suite
