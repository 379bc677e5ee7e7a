#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/printable.h"
#include "command_line/output_target.h"
#include "command_line/value_checks.h"
#include "device/parallel.h"
#include "device/placement.h"
#include "model_files/checkpoint_folder.h"
#include "model_files/hugging_face.h"
#include "ops/matmul.h"
#include "program/step_hooks.h"
#include "program/verbs.h"
#include "spec/train_spec.h"
#include "telemetry/machine.h"
#include "text/json.h"
#include "train/checkpoints.h"
#include "train/loop.h"

namespace tprimat::engine {
namespace {

constexpr const char* k_train_examples =
    "  tprimat train --spec train_spec.json\n"
    "  TPRIMAT_STEPS=steps.jsonl tprimat train --spec train_spec.json\n"
    "  tprimat train --spec train_spec.json --save ckpt --save-interval 100      resumes from ckpt when started again\n"
    "  tprimat train --spec train_spec.json --initial-weights hf_model --save ckpt --export hf_trained\n"
    "  tprimat train --spec train_spec.json --profile                            time per operation\n"
    "  mpirun -n 4 tprimat train --spec train_spec.json                          a layout of four ranks\n"
    "  torchrun --standalone --no-python --nproc-per-node 4 tprimat train --spec train_spec.json     the same, without "
    "MPI\n"
    "  tprimat train --spec train_spec.json --device nvd                         on the first NVIDIA GPU\n"
    "  tprimat run --framework native --dry-run                                  shows how `run` calls it\n";

struct TrainOptions {
  std::string spec_path, save, load, initial_weights, export_folder, tensorboard;
  std::string device = "cpu";
  int64_t steps = 0, save_interval = 0, keep = 0;
  bool no_resume = false, profile = false;
};

TrainSpec read_spec(const TrainOptions& options) {
  const Json json = parse_json(read_file(options.spec_path), options.spec_path);
  TrainSpec spec = train_spec_from_json(json, options.spec_path);
  throw_if_any(find_unknown_train_spec_keys(json, options.spec_path));
  if (options.steps > 0) spec.steps = options.steps;
  if (!options.save.empty()) spec.checkpoint.directory = options.save;
  if (options.save_interval > 0) spec.checkpoint.save_interval = options.save_interval;
  if (options.keep > 0) spec.checkpoint.keep_last_n = options.keep;
  if (options.no_resume) spec.checkpoint.resume = false;
  if (!options.load.empty()) spec.checkpoint.load = options.load, spec.checkpoint.load_step.reset();
  if (!options.initial_weights.empty()) spec.checkpoint.initial_weights = options.initial_weights;
  if (!options.export_folder.empty() && spec.checkpoint.directory.empty())
    throw Error(Problem{"--export needs a checkpoint to take the weights from", "--export", "add --save DIR"});
  if (spec.threads == 0) {
    const LauncherPlace place = launcher_place();  // ranks of one machine share its processors
    set_thread_count(0);
    spec.threads = std::max(1, thread_count() / std::max(1, place.local_size));
  }
  throw_if_any(check_train_spec(spec, options.spec_path));
  return spec;
}

// A checkpoint is copied and then written while the training goes on.
size_t checkpoint_copy_bytes(Engine& engine) {
  size_t bytes = 0;
  engine.visit_state(
      [&](const StatePiece& piece) { std::visit([&](auto values) { bytes += values.size_bytes(); }, piece.values); });
  return bytes;
}

void print_memory(std::string_view component, size_t bytes, std::string_view when) {
  print_result(fmt::format("  memory {:<15} {:8.3f} GB{}\n", component, static_cast<double>(bytes) / 1e9, when));
}

// The GPU by the name that its runtime gives, so that a log says what computed.
std::string print_device(const Backend& backend) {
  return backend.accelerator == nullptr ? "" : fmt::format(" | device {}", printable(backend.device->name()));
}

// The machine's processors as a rank found them, and its choice among them.
struct Processors {
  int64_t affinity = count_affinity();  // before this rank keeps to its memory
  std::vector<int> memory_nodes = {};   // see bind_rank_to_memory()

  std::string print_memory() const {
    if (memory_nodes.empty()) return "";
    const bool is_one = memory_nodes.size() == 1;
    return fmt::format(" | memory of node{} {}{}", is_one ? "" : "s", fmt::join(memory_nodes, ", "),
                       is_one ? "" : ", page by page");
  }
};

Processors choose_processors(const TrainSpec& spec, Platform platform) {
  Processors chosen;
  const LauncherPlace place = launcher_place();
  if (platform == Platform::cpu)
    chosen.memory_nodes = bind_rank_to_memory({place.local_rank, place.local_size, spec.threads});
  return chosen;
}

// What decides the number of threads, and which kernels multiply.
void print_processors(const TrainSpec& spec, const Processors& own) {
  const auto quota = read_cgroup_limits("/").processors;
  print_result(fmt::format("processors {} | affinity {}{}{} | this rank takes {}\nkernels | products {} |\n",
                           read_cpu_facts("/", own.affinity).logical_processors, own.affinity,
                           quota ? fmt::format(" | quota {:.2f}", *quota) : "", own.print_memory(), spec.threads,
                           product_kernels(spec.precision)));
}

void print_summary(const TrainSpec& spec, Engine& engine, const Backend& backend, const Processors& processors) {
  const MemoryReport memory = engine.memory();
  print_result(fmt::format("model {} | parameters {} | precision {} | threads {}{} | allocated {:.3f} GB\n",
                           spec.model.name, count_parameters(spec.model).total(), enum_name(spec.precision),
                           spec.threads, print_device(backend), static_cast<double>(memory.bytes) / 1e9));
  if (backend.accelerator == nullptr) print_processors(spec, processors);
  const ParallelSpec& p = spec.parallel;
  if (p.ranks() > 1)
    print_result(fmt::format("layout TP {} PP {} VP {} DP {} CP {} ZeRO-{}{} | rank 0: {} parameters\n", p.tensor,
                             p.pipeline, p.virtual_pipeline, p.data, p.context, p.zero_stage,
                             p.sequence_parallel ? " SP" : "", engine.parameter_count()));
  for (const auto& [component, bytes] : memory.by_component) print_memory(component, bytes, "");
  if (!spec.checkpoint.directory.empty())
    print_memory("checkpoint copy", checkpoint_copy_bytes(engine), " more while one is written");
}

// What would fail after hours fails now.
void prepare_folders(const TrainSpec& spec, const TrainOptions& options) {
  std::error_code failure;
  if (!options.export_folder.empty() && std::filesystem::exists(options.export_folder, failure) &&
      !std::filesystem::is_empty(options.export_folder, failure))
    throw Error(Problem{"the folder is not empty", options.export_folder, "export into a new folder"});
  if (spec.checkpoint.directory.empty()) return;
  std::filesystem::create_directories(spec.checkpoint.directory, failure);
  if (failure || ::access(spec.checkpoint.directory.c_str(), W_OK) != 0)
    throw Error(Problem{
        "cannot write checkpoints here: " + (failure ? failure.message() : std::string("the folder is not writable")),
        spec.checkpoint.directory, "choose another directory"});
}

// What follows the steps of a training.
class Watchers {
 public:
  Watchers(const TrainOptions& options, const TrainSpec& spec, Engine& engine, const Backend& backend,
           int64_t first_step)
      : last_step_(spec.steps),
        speaks_(engine.ranks().world->rank() == 0),
        trace_(engine, backend, spec, first_step),
        kernels_(backend.report, engine, first_step) {
    if (speaks_) output_.emplace(spec, options.tensorboard, first_step);
    if (options.profile) profile_.emplace(engine, backend, spec, first_step);
  }

  // This and `checkpoints` must outlive them.
  TrainingHooks hooks(Checkpoints& checkpoints) {
    TrainingHooks hooks;
    hooks.step = [this](const StepRecord& record) { note(record); };
    hooks.note = [this](const std::string& note) {
      if (speaks_) log_warning(note);
    };
    hooks.after_step = [this, &checkpoints](int64_t step) {
      const auto begin = SteadyClock::now();
      checkpoints.after_step(step);
      if (checkpoints.last_step() == step) trace_.note_checkpoint(begin);
      if (step == last_step_ && trace_.last_step() > step) checkpoints.finish();  // further steps are to be timed
    };
    hooks.last_extra_step = trace_.last_step();
    hooks.extra_step = [this](const StepRecord& record) { note_extra(record); };
    return hooks;
  }

  void print_profile() const {
    if (profile_ && speaks_) profile_->print();
  }

 private:
  void note(const StepRecord& record) {
    trace_.note(record);
    kernels_.note(record.step);
    if (output_) output_->show(record);
    if (profile_) profile_->note(record);
    trace_.finish(record.step);
  }

  void note_extra(const StepRecord& record) {
    trace_.note(record);
    if (output_) output_->show_extra(record);
    trace_.finish(record.step);
  }

  const int64_t last_step_;
  const bool speaks_;
  std::optional<StepOutput> output_;
  std::optional<StepProfile> profile_;
  StepTrace trace_;
  KernelNotes kernels_;
};

ExitStatus train(const TrainOptions& options) {
  const TrainSpec spec = read_spec(options);
  const auto platform = parse_choice<Platform>(options.device, "--device");
  const Processors processors = choose_processors(spec, platform);
  std::unique_ptr<Communicator> world = make_world_communicator();
  const Backend backend = backend_of(platform, *world, launcher_place());
  std::unique_ptr<Engine> engine = make_engine(spec, std::move(world), backend);
  const bool speaks = engine->ranks().world->rank() == 0;
  if (speaks) prepare_folders(spec, options);
  if (speaks) print_summary(spec, *engine, backend, processors);
  Checkpoints checkpoints(spec, *engine, [](const std::string& note) { log_note(note); });
  const int64_t first_step = checkpoints.restore();

  Watchers watchers(options, spec, *engine, backend, first_step);
  const TrainingHooks hooks = watchers.hooks(checkpoints);
  try {
    run_training(spec, *engine, first_step, hooks);
  } catch (const TrainingStopped&) {
    checkpoints.finish();  // the one under way is worth having
    throw;
  }
  checkpoints.finish();
  if (!options.export_folder.empty() && speaks)
    export_checkpoint_to_hugging_face(step_folder(spec.checkpoint.directory, checkpoints.last_step()),
                                      {options.export_folder});
  engine.reset();  // a GPU's peak is measured in the memory that it leaves
  watchers.print_profile();
  return ExitStatus::done;
}

void add_checkpoint_options(CommandLine& verb, TrainOptions& options) {
  verb.add_option("--save", options.save,
                  "Checkpoint directory; a later start resumes from the newest intact "
                  "checkpoint")
      ->check(folder_output("a folder of checkpoints"))
      ->type_name("DIR");
  verb.add_option("--save-interval", options.save_interval, "Steps between checkpoints (default: only at the end)")
      ->check(positive_count());
  verb.add_option("--keep", options.keep, "Checkpoints to keep (default: 2)")->check(positive_count());
  verb.add_flag("--no-resume", options.no_resume,
                "Start from the beginning; refused if the directory holds checkpoints");
  verb.add_option(
          "--load", options.load,
          "Continue from the newest intact checkpoint of this directory, which may be another than that of --save")
      ->type_name("DIR");
  verb.add_option("--initial-weights", options.initial_weights,
                  "Hugging Face folder (config.json, safetensors) to start from instead of random weights")
      ->type_name("DIR");
  verb.add_option("--export", options.export_folder, "Write the trained weights as a Hugging Face folder")
      ->check(folder_output("a Hugging Face folder"))
      ->type_name("DIR");
}

}  // namespace

void add_train_verb(CommandLine& program, Session& session) {
  CommandLine* verb = add_verb(program, session, "train",
                               "Train one model with the native trainer, from a JSON specification", k_train_examples);
  auto options = std::make_shared<TrainOptions>();
  verb->add_option("--spec", options->spec_path, "Training specification, as written by `tprimat run` (JSON)")
      ->required()
      ->type_name("FILE");
  verb->add_option("--steps", options->steps, "Stop after this many steps instead of those in the specification")
      ->check(positive_count());
  verb->add_option("--device", options->device, "Device: cpu, or one GPU per rank: nvd, amd (default: cpu)")
      ->choices(choices_of<Platform>())
      ->type_name("NAME")
      ->take_last();  // `tprimat run` states it before the arguments of the configuration
  add_checkpoint_options(*verb, *options);
  verb->add_option("--tensorboard", options->tensorboard, "Write TensorBoard event files here")
      ->check(folder_output("a folder of event files"))
      ->type_name("DIR");
  verb->add_flag("--profile", options->profile, "Show the time per operation at the end");
  verb->callback([&session, options] { session.action = [options] { return train(*options); }; });
}

}  // namespace tprimat::engine
