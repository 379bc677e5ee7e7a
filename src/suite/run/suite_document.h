#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "run/forecast.h"
#include "run/layout_ranking.h"
#include "run/outcome.h"
#include "run/plan_layouts.h"
#include "text/fields.h"
#include "text/json_members.h"

// What `tprimat run` and `tprimat estimate --memory` print as JSON, as structs with field lists: JSON and schema follow
// from them.
namespace tprimat::suite::document {

struct MemoryForecast {
  std::optional<std::string> not_predicted;
  std::optional<double> memory_bytes;
  std::optional<OrderedMap<double>> bytes;
  std::optional<double> expert_load, all_ranks_bytes, device_bytes;
  std::optional<std::string> device_source;
  std::optional<bool> fits;

  static constexpr auto fields() {
    using M = MemoryForecast;
    return field_list(
        field("not_predicted", &M::not_predicted, "what the planner has no model of; then nothing else is predicted"),
        field("memory_bytes", &M::memory_bytes, "predicted memory of the rank with the highest use, bytes"),
        field("bytes", &M::bytes, "the same by component, bytes"),
        field("expert_load", &M::expert_load,
              "tokens on the fullest rank over the mean, of a mixture of experts; absent: a dense model"),
        field("all_ranks_bytes", &M::all_ranks_bytes,
              "predicted memory of all ranks that share the device, bytes; absent: one rank per device"),
        field("device_bytes", &M::device_bytes, "memory of the device, bytes; absent: not known"),
        field("device_source", &M::device_source, "source of device_bytes"),
        field("fits", &M::fits, "the prediction fits into the device's memory; absent: memory not known"));
  }
};

// Of one training that the configuration holds.
struct MemoryEstimate : MemoryForecast {
  std::string run;

  static constexpr auto fields() {
    return extend_fields<MemoryForecast>(field("run", &MemoryEstimate::run, "framework, model, platform and strategy"));
  }
};

struct PlannedFile {
  std::string path, content;
  std::optional<bool> executable;

  static constexpr auto fields() {
    using P = PlannedFile;
    return field_list(field("path", &P::path, "absolute path"), field("content", &P::content, "text of the file"),
                      field("executable", &P::executable, "true: may be executed; absent: it may not"));
  }
};

struct PlannedDeviation {
  std::string key, asked, effective;
  std::optional<std::string> reason;

  static constexpr auto fields() {
    using P = PlannedDeviation;
    return field_list(field("key", &P::key, "setting"), field("asked", &P::asked, "configured value"),
                      field("effective", &P::effective, "value that the framework uses"),
                      field("reason", &P::reason, "reason for the other value; absent: the framework has its own"));
  }
};

struct PlannedPlace {
  int64_t rank = 1;
  double step_time_seconds = 0;

  static constexpr auto fields() {
    using P = PlannedPlace;
    return field_list(field("rank", &P::rank, "place in the planner's ranking; 1: the fastest"),
                      field("step_time_seconds", &P::step_time_seconds, "predicted step time, s"));
  }
};

// One training that `tprimat run --dry-run` would start.
struct PlannedTraining {
  std::string run;
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
  std::string working_directory;
  std::vector<PlannedFile> files;
  std::string log, steps_file;
  std::vector<PlannedDeviation> deviations;
  std::vector<std::string> remarks;
  MemoryForecast prediction;
  std::vector<std::string> cleanup_command;
  std::string result, config_hash;
  std::optional<std::vector<std::string>> default_choice;
  std::optional<std::string> installation, framework_version, checked_against;
  std::optional<PlannedPlace> planned;

  static constexpr auto fields() {
    using P = PlannedTraining;
    return field_list(
        field("run", &P::run, "framework, model, platform, strategy and number of the repetition"),
        field("command", &P::command, "program and arguments"),
        field("environment", &P::environment, "variables added to the caller's environment"),
        field("working_directory", &P::working_directory, "folder in which the command starts"),
        field("files", &P::files, "files written before the start"),
        field("log", &P::log, "file that receives stdout and stderr"),
        field("steps_file", &P::steps_file, "file of step records, one JSON object per line; empty: see the log"),
        field("deviations", &P::deviations, "settings that the framework does not support as configured"),
        field("remarks", &P::remarks, "remarks on the launch, as sentences"),
        field("prediction", &P::prediction, "predicted memory"),
        field("cleanup_command", &P::cleanup_command,
              "ends a job or container that outlives the command; empty: not needed"),
        field("result", &P::result, "result file"),
        field("config_hash", &P::config_hash, "hash of specification and launch; equal for equal configurations"),
        field("default_choice", &P::default_choice,
              "what the built-in default chose for this machine's GPUs, and why; absent: a configuration stated it"),
        field("installation", &P::installation, "label of the framework's installation; absent: it has one"),
        field("framework_version", &P::framework_version, "version of the framework; absent: not known"),
        field("checked_against", &P::checked_against, "versions that the launch was checked against; absent: none"),
        field("planned", &P::planned, "place in the planner's ranking; absent: without --from-plan"));
  }
};

// `tprimat run`.
struct RunReport {
  bool interrupted = false;
  std::vector<RunOutcome> runs;
  std::vector<std::string> unavailable;
  std::optional<std::vector<std::string>> skipped;
  std::optional<std::vector<ProfileOutcome>> profiles;
  std::optional<std::vector<LayoutRanking>> plan_rankings;

  static constexpr auto fields() {
    using R = RunReport;
    return field_list(
        field("interrupted", &R::interrupted, "the suite was stopped before its end"),
        field("runs", &R::runs, "outcome of each run"),
        field("unavailable", &R::unavailable, "frameworks that cannot run this or are missing, as sentences"),
        field("skipped", &R::skipped, "frameworks that are not installed, with --framework all; absent: none"),
        field("profiles", &R::profiles, "profiled runs; absent: none"),
        field("plan_rankings", &R::plan_rankings, "predicted and measured rankings; absent: without --from-plan"));
  }
};

MemoryForecast describe_forecast(const Forecast& forecast);
PlannedTraining describe_planned(const PlannedRun& run, const Forecast& forecast,
                                 const std::vector<LayoutPlan>& layouts);
RunReport describe_report(const SuiteReport& report, const std::vector<LayoutPlan>& layouts = {});

}  // namespace tprimat::suite::document
