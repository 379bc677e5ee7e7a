#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "cli/verbs.h"
#include "spec/train_spec.h"
#include "text/json.h"
#include "train/log_line.h"
#include "train/loop.h"

namespace tprimat {
namespace {

constexpr const char* k_examples =
    "  tprimat train --spec train_spec.json\n"
    "  TPRIMAT_STEPS=steps.jsonl tprimat train --spec train_spec.json\n"
    "  tprimat run --framework native --dry-run     shows how `run` calls it\n";

struct TrainOptions {
  std::string spec_path;
  int64_t steps = 0;
};

void print_summary(const TrainSpec& spec, const Engine& engine) {
  const MemoryReport memory = engine.memory();
  print_result(fmt::format("model {} | parameters {} | precision {} | threads {} | allocated {:.3f} GB\n",
                           spec.model.name, engine.parameter_count(), enum_name(spec.precision), spec.threads,
                           static_cast<double>(memory.bytes) / 1e9));
  for (const auto& [component, bytes] : memory.by_component)
    print_result(fmt::format("  memory {:<15} {:8.3f} GB\n", component, static_cast<double>(bytes) / 1e9));
}

ExitStatus train(const TrainOptions& options) {
  TrainSpec spec = train_spec_from_json(parse_json(read_file(options.spec_path), options.spec_path), options.spec_path);
  if (options.steps > 0) spec.steps = options.steps;
  const std::unique_ptr<Engine> engine = make_engine(spec);
  print_summary(spec, *engine);

  std::optional<LineWriter> steps_file;
  if (const char* path = std::getenv("TPRIMAT_STEPS")) steps_file.emplace(path);
  run_training(spec, *engine, [&](const StepRecord& record) {
    print_result(render_log_line(record, spec) + "\n");
    std::fflush(stdout);
    if (steps_file) steps_file->write_line(step_record_to_line(record));
  });
  return ExitStatus::done;
}

}  // namespace

void add_train_verb(CLI::App& program, Session& session) {
  CLI::App* verb = add_verb(program, session, "train",
                            "The native trainer: train one model as a JSON specification says", k_examples);
  auto options = std::make_shared<TrainOptions>();
  verb->add_option("--spec", options->spec_path, "What to train, as written by `tprimat run` (JSON)")
      ->required()
      ->type_name("FILE");
  verb->add_option("--steps", options->steps, "Stop after this many steps instead of those in the specification")
      ->check(CLI::PositiveNumber);
  verb->callback([&session, options] { session.action = [options] { return train(*options); }; });
}

}  // namespace tprimat
