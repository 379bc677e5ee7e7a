
#include "base/files.h"
#include "sinks/sinks.h"
#include "text/json.h"

namespace tprimat::results {

namespace embedded {
extern const std::string_view import_wandb_py;
}

namespace {

namespace fs = std::filesystem;

Json cell_to_json(const Cell& cell) {
  return std::visit(
      [](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>)
          return Json();
        else
          return Json(value);
      },
      cell);
}

// A row as wandb.Run.log takes it; "_step" and "_timestamp" are W&B's own names.
std::string history_line(const StepRow& row) {
  Json json = {{"_step", row.step}};
  if (row.unix_time) json["_timestamp"] = *row.unix_time;
  for (const StepFigure& figure : step_figures())
    if (const auto& value = row.*figure.member) json[std::string(figure.tag)] = *value;
  return print_json_line(json) + '\n';
}

// W&B's run files are an undocumented format. Its Python interface is documented, so an export is data and a script
// that imports it.
class WandbSink : public Sink {
 public:
  explicit WandbSink(const fs::path& folder) : folder_(folder / "wandb-import") {}

  void add(const ExportedRun& run) override {
    Json config = Json::object(), summary = Json::object();
    for (const RunColumn& column : run_columns()) {
      const Json value = cell_to_json(column.read(run));
      if (!value.is_null()) (column.kind == ColumnKind::figure ? summary : config)[column.key] = value;
    }
    std::string history;
    for (const StepRow& row : make_step_rows(run.result)) history += history_line(row);
    const fs::path folder = folder_ / "runs" / run.name;
    write_file_atomically(folder / "history.jsonl", history, Survives::kill);
    write_file_atomically(folder / "summary.json", print_json(summary), Survives::kill);
    write_file_atomically(folder / "config.json", print_json(config), Survives::kill);  // last: the script looks for it
  }

  void finish() override {
    write_file_atomically(folder_ / "import_wandb.py", embedded::import_wandb_py, Survives::kill);
  }

  std::vector<fs::path> places() const override { return {folder_}; }

 private:
  fs::path folder_;
};

}  // namespace

SinkKind wandb_sink() {
  return {"wandb", "history, settings and figures of each run, and a script that imports them as offline W&B runs",
          open_sink<WandbSink>};
}

}  // namespace tprimat::results
