#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/gathered_report.h"
#include "report/log_report.h"
#include "text/fields.h"

// What `tprimat extract` prints as JSON of a folder, and of the logs that it finds itself, as structs with field lists:
// JSON and schema follow from them.
namespace tprimat::results::document {

// A log; without a result, `nothing` says why.
struct ExtractedLog {
  std::string file;
  std::optional<std::string> nothing, result, format;
  std::optional<RunStatus> status;
  std::optional<std::string> status_reason;
  std::optional<double> time_to_train_seconds;
  std::optional<int64_t> steps;
  std::optional<double> median_step_time_seconds;
  std::optional<std::map<std::string, Estimate>> figures;

  static constexpr auto fields() {
    using E = ExtractedLog;
    return field_list(
        field("file", &E::file, "log"),
        field("nothing", &E::nothing, "reason for a missing result; absent: there is a result"),
        field("result", &E::result, "result file; absent: no result"),
        field("format", &E::format, "format of the log; empty: not known; absent: no result"),
        field("status", &E::status, "how the run ended; absent: no result"),
        field("status_reason", &E::status_reason, "why it did not complete"),
        field("time_to_train_seconds", &E::time_to_train_seconds,
              "time to the target quality, s; absent: no target, or not reached"),
        field("steps", &E::steps, "steps in the log; absent: not known"),
        field("median_step_time_seconds", &E::median_step_time_seconds,
              "median of the steady steps, s; absent: not known"),
        field("figures", &E::figures, "metrics that are known, by key, in their units; absent: no result"));
  }
};

// A log that `tprimat extract` found itself.
struct GatheredLog : ExtractedLog {
  std::string place, model, model_because;
  std::optional<Framework> framework;
  std::optional<Platform> platform;
  std::optional<std::vector<AssumedFact>> assumed;

  static constexpr auto fields() {
    using G = GatheredLog;
    return extend_fields<ExtractedLog>(
        field("place", &G::place, "where it was found: a folder's name, or the variable that names it"),
        field("model", &G::model, "key of the configured model"),
        field("model_because", &G::model_because, "what shows that the log is of this model"),
        field("framework", &G::framework, "framework that trained; absent: not known"),
        field("platform", &G::platform, "nvd, amd or cpu; absent: not known"),
        field("assumed", &G::assumed, "facts that the log does not state; absent: none"));
  }
};

struct PassedOverFile {
  std::string file, why;

  static constexpr auto fields() {
    using P = PassedOverFile;
    return field_list(field("file", &P::file, "file that was left"), field("why", &P::why, "reason for leaving it"));
  }
};

struct LogPlace {
  std::string name, folder;
  bool exists = false;
  int64_t logs = 0;
  std::optional<std::string> incomplete;

  static constexpr auto fields() {
    using L = LogPlace;
    return field_list(field("name", &L::name, "name of the place"), field("folder", &L::folder, "folder searched"),
                      field("exists", &L::exists, "the folder exists"), field("logs", &L::logs, "logs found there"),
                      field("incomplete", &L::incomplete, "reason why not all of it was searched; absent: all was"));
  }
};

struct GatheredLogs {
  std::vector<GatheredLog> taken;
  std::vector<PassedOverFile> passed_over;
  std::vector<LogPlace> places;

  static constexpr auto fields() {
    using G = GatheredLogs;
    return field_list(field("taken", &G::taken, "logs that were read"),
                      field("passed_over", &G::passed_over, "files that were left"),
                      field("places", &G::places, "folders searched"));
  }
};

std::vector<ExtractedLog> describe_extracted(const std::vector<ExtractedFile>& files);
GatheredLogs describe_gathered(const GatheredReport& report);

}  // namespace tprimat::results::document
