#include "cli/extract_gathered.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "cli/session_config.h"
#include "command_line/output_target.h"
#include "report/extract_document.h"
#include "result/result_file.h"
#include "result/result_place.h"
#include "run/gathered_logs.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat::cli {
namespace {

namespace fs = std::filesystem;

void require_sense(const ExtractRequest& request) {
  std::vector<Problem> problems;
  if (names_stdout(request.output) || fs::path(request.output).extension() == ".json")
    problems.push_back({"without a log, several results may be written", "--output", "name a directory, or the log"});
  if (!request.options.known.model.empty())
    problems.push_back({"without a log, there may be logs of several models", "--model",
                        "name the log, or set the variable of its model, as in LLAMA_LOG=FILE"});
  throw_if_any(std::move(problems));
}

std::string name_place(const suite::LogPlace& place) {
  return fmt::format("{} ({}{})", printable(place.folder.lexically_normal().string()), place.name,
                     place.exists ? "" : ", no such folder");
}

// One sentence: every place that was looked at, and how to name a log.
[[noreturn]] void refuse_nothing(const suite::Gathering& found, const suite::LoadedExperiment& configuration) {
  std::string places = join(found.variables, ", ");
  for (const suite::LogPlace& place : found.places) places += (places.empty() ? "" : ", ") + name_place(place);
  const char* what = found.passed_over.empty()
                         ? "no log given, and none found"
                         : "no log given, and none of those found is taken (listed above); searched";
  throw Error(Problem{fmt::format("{} {}{}", what, found.passed_over.empty() ? "in " : "", places),
                      configuration.origin.text(),
                      fmt::format("name it: tprimat extract FILE, or {}=FILE for its model",
                                  found.variables.empty() ? "LLAMA_LOG" : found.variables.front())});
}

class GatheredExtraction {
 public:
  GatheredExtraction(const ExtractRequest& request, const suite::LoadedExperiment& configuration, fs::path output)
      : request_(request), configuration_(configuration), output_(std::move(output)) {}

  // What is wrong with one log is told; the others still give their results.
  ExitStatus extract(const suite::GatheredLog& log) try {
    suite::ExtractOptions options = request_.options;
    options.configuration = &configuration_;
    options.named = log.named;
    if (!log.model_named_by.empty()) options.known.model = log.model, options.model_named_by = log.model_named_by;
    ExitStatus worst = ExitStatus::done;
    for (RunResult& result : suite::extract_runs(log.path.string(), options))
      worst = std::max(worst, store(log, result));
    return worst;
  } catch (const Error& error) {
    if (error.status() == ExitStatus::work_failed) throw;  // the results cannot be written
    for (const Problem& problem : error.problems()) log_error(to_string(problem));
    taken_.push_back({{log.path.string(), "", error.problems().front().what, {}}, log.place, log.model, ""});
    return error.status();
  }

  std::vector<results::GatheredFile> take() { return std::move(taken_); }

 private:
  ExitStatus store(const suite::GatheredLog& log, RunResult& result) {
    results::GatheredFile file{{log.path.string(), "", "", result}, log.place, log.model, log.model_because};
    if (!result.step_times.empty() || result.events || result.time_to_train) {
      const fs::path target = free_path(wanted_path(log, result), result, paths_);
      write_run_result(target, result, Survives::kill);
      file.file.result_path = target.string();
      tell_contradictions(result, target);
    } else {
      file.file.why_nothing = result.status_reason.value_or("no steps found");
    }
    results::drop_series(file.file);
    taken_.push_back(std::move(file));
    return tell_outcome(result, log.path.string());
  }

  fs::path wanted_path(const suite::GatheredLog& log, const RunResult& result) const {
    const auto name = suite::gathered_result_name(configuration_.experiment, result, log.behind_model);
    const logs::AttemptChoice& attempts = request_.options.attempts;
    const bool names_attempt = attempts.all || attempts.number;
    const fs::path path = output_ / name.value_or(log.path.filename().string() + ".json");
    return names_attempt ? tprimat::result_path(result, "", path, true) : path;
  }

  const ExtractRequest& request_;
  const suite::LoadedExperiment& configuration_;
  fs::path output_;
  std::set<fs::path> paths_;
  std::vector<results::GatheredFile> taken_;
};

results::GatheredReport describe_search(const suite::Gathering& found) {
  results::GatheredReport report;
  for (const suite::SkippedFile& file : found.passed_over)
    report.passed_over.emplace_back(file.path.string(), file.why);
  for (const suite::LogPlace& place : found.places) {
    report.places.push_back({place.name, place.folder.string(), place.incomplete, place.exists, place.logs});
    if (!place.incomplete.empty())
      log_warning(fmt::format("{} was not searched completely: {}; name a log that is missing here",
                              printable(place.folder.string()), place.incomplete));
  }
  return report;
}

}  // namespace

ExitStatus extract_gathered(const ExtractRequest& request, const Session& session) {
  require_sense(request);
  const suite::LoadedExperiment configuration = load_session_config(session);
  const fs::path output =
      fs::path(request.output.empty() ? configuration.experiment.output_directory : request.output).lexically_normal();
  const suite::Gathering found =
      suite::gather_logs(configuration, {output, suite::current_environment(), request.options.format, {}});
  results::GatheredReport report = describe_search(found);
  GatheredExtraction extraction(request, configuration, output);
  ExitStatus worst = ExitStatus::done;
  for (const suite::GatheredLog& log : found.taken) worst = std::max(worst, extraction.extract(log));
  report.taken = extraction.take();
  if (session.json)
    print_result(print_json(to_json(results::document::describe_gathered(report))));
  else
    print_result(results::render_gathered(report, session.verbose));
  if (found.taken.empty() && found.extracted == 0) refuse_nothing(found, configuration);
  if (found.taken.empty()) log_note("every log that was found has its result already");
  return worst;
}

}  // namespace tprimat::cli
