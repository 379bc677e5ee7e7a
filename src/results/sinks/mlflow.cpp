#include <fmt/format.h>

#include "archive/archive_format.h"
#include "base/files.h"
#include "result/result_file.h"
#include "sinks/sinks.h"
#include "text/format.h"
#include "text/json.h"

namespace tprimat::results {
namespace {

namespace fs = std::filesystem;

// MLflow's FileStore: mlruns/<experiment>/<run>/{meta.yaml, metrics/<key>, params/<key>, tags/<key>}. All runs belong
// to one experiment with a fixed number, so that exports can be merged into one mlruns.
constexpr std::string_view k_experiment_id = "746072696474000001";
constexpr std::string_view k_experiment_name = "tprimat";
constexpr int k_run_finished = 3, k_run_failed = 4, k_run_killed = 5;  // mlflow.entities.RunStatus
constexpr int k_source_local = 4;                                      // mlflow.entities.SourceType

int mlflow_status(RunStatus status) {
  if (status == RunStatus::complete) return k_run_finished;
  return status == RunStatus::interrupted ? k_run_killed : k_run_failed;
}

// A JSON string in ASCII is also a YAML string.
std::string quote_yaml(std::string_view text) { return print_json_ascii(Json(text)); }

// RFC 3986: other characters are percent-encoded.
std::string file_uri(const fs::path& path) {
  std::string uri = "file://";
  for (const char c : fs::absolute(path).lexically_normal().string()) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("/-_.~").find(c) != std::string_view::npos;
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<uint8_t>(c));
  }
  return uri;
}

// The same result under the same name always gets the same run id.
std::string mlflow_run_id(const ExportedRun& run) {
  return sha256_hex(run.name + '\n' + print_json_line(run_result_to_json(run.result))).substr(0, 32);
}

class MlflowRun {
 public:
  MlflowRun(const fs::path& experiment, const ExportedRun& run)
      : run_(run), id_(mlflow_run_id(run)), folder_(experiment / id_) {}

  // The description comes last: without it MLflow ignores the run.
  void write() const {
    const std::vector<StepRow> rows = make_step_rows(run_.result);
    const double start = start_of_steps(run_.result).value_or(0);
    const double end = rows.empty() ? start : rows.back().time_or_elapsed();
    write_columns(end);
    for (const StepFigure& figure : step_figures()) write_series(figure, rows);
    put("tags/mlflow.runName", run_.name);
    put("artifacts/result.json", print_json(run_result_to_json(run_.result)));
    write_description(start, end);
  }

 private:
  void put(const std::string& name, std::string_view text) const {
    write_file_atomically(folder_ / name, text, Survives::kill);
  }

  void write_columns(double end) const {
    for (const RunColumn& column : run_columns()) {
      const std::string text = cell_text(column.read(run_));
      if (text.empty() || column.key == "run") continue;
      if (column.kind == ColumnKind::figure)
        put("metrics/" + figure_name(column.key), fmt::format("{} {} 0\n", to_milliseconds(end), text));
      else
        put((column.kind == ColumnKind::setting ? "params/" : "tags/") + column.key, printable(text));
    }
  }

  // A run's figure and that of a step may have the same key.
  static std::string figure_name(const std::string& key) { return "run/" + key; }

  void write_series(const StepFigure& figure, const std::vector<StepRow>& rows) const {
    std::string lines;
    for (const StepRow& row : rows)
      if (const auto& value = row.*figure.member)
        lines += fmt::format("{} {} {}\n", to_milliseconds(row.time_or_elapsed()), *value, row.step);
    if (!lines.empty()) put(fmt::format("metrics/step/{}", figure.key), lines);
  }

  void write_description(double start, double end) const {
    put("meta.yaml",
        fmt::format(
            "artifact_uri: {}\nend_time: {}\nentry_point_name: ''\nexperiment_id: '{}'\nlifecycle_stage: active\n"
            "run_id: {}\nrun_uuid: {}\nrun_name: {}\nsource_name: tprimat\nsource_type: {}\nsource_version: ''\n"
            "start_time: {}\nstatus: {}\ntags: []\nuser_id: ''\n",
            quote_yaml(file_uri(folder_ / "artifacts")), to_milliseconds(end), k_experiment_id, quote_yaml(id_),
            quote_yaml(id_), quote_yaml(run_.name), k_source_local, to_milliseconds(start),
            mlflow_status(run_.result.status)));
  }

  const ExportedRun& run_;
  std::string id_;
  fs::path folder_;
};

class MlflowSink : public Sink {
 public:
  explicit MlflowSink(const fs::path& folder) : store_(folder / "mlruns"), experiment_(store_ / k_experiment_id) {}

  void add(const ExportedRun& run) override { MlflowRun(experiment_, run).write(); }

  void finish() override {
    write_file_atomically(
        experiment_ / "meta.yaml",
        fmt::format("artifact_location: {}\ncreation_time: 0\nexperiment_id: '{}'\nlast_update_time: 0\n"
                    "lifecycle_stage: active\nname: {}\n",
                    quote_yaml(file_uri(experiment_)), k_experiment_id, k_experiment_name),
        Survives::kill);
  }

  std::vector<fs::path> places() const override { return {store_}; }

 private:
  fs::path store_, experiment_;
};

}  // namespace

SinkKind mlflow_sink() { return {"mlflow", "mlruns, an MLflow file store", open_sink<MlflowSink>}; }

}  // namespace tprimat::results
