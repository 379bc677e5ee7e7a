#include "base/files.h"
#include "sinks/sinks.h"
#include "text/event_records.h"

namespace tprimat::results {
namespace {

// One folder per run, as TensorBoard expects. The file's name is fixed, so that a new export replaces it: TensorBoard
// would merge two files of one folder.
class TensorboardSink : public Sink {
 public:
  explicit TensorboardSink(const std::filesystem::path& folder) : folder_(folder / "tensorboard") {}

  void add(const ExportedRun& run) override {
    NewFile file(folder_ / run.name / "events.out.tfevents.0.tprimat");
    file.write(make_version_record(start_of_steps(run.result).value_or(0)));
    for (const StepRow& row : make_step_rows(run.result)) {
      std::vector<EventScalar> scalars;
      for (const StepFigure& figure : step_figures())
        if (const auto& value = row.*figure.member) scalars.push_back({figure.tag, *value});
      if (!scalars.empty()) file.write(make_step_record(row.step, row.time_or_elapsed(), scalars));
    }
    file.finish(Survives::kill);
  }

  std::vector<std::filesystem::path> places() const override { return {folder_}; }

 private:
  std::filesystem::path folder_;
};

}  // namespace

SinkKind tensorboard_sink() { return {"tensorboard", "event files, one folder per run", open_sink<TensorboardSink>}; }

}  // namespace tprimat::results
