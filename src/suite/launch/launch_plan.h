#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/mounted_program.h"
#include "result/kinds.h"
#include "spec/launcher_settings.h"
#include "spec/train_spec.h"
#include "text/enum_names.h"

namespace tprimat::suite {

struct GeneratedFile {
  std::string path, content;
  bool executable = false;
};

// A setting that the framework does not support and replaces, without refusing the run.
struct Deviation {
  std::string key;  // of the TrainSpec: "rope_scaling"
  std::string asked, effective;
  std::string reason = {};  // why the suite chose another setting; empty: the framework has its own
};

// A setting as the program gets it, which it is expected to print back: programs may drop what they do not know.
struct StatedSetting {
  std::string name;   // in the framework's own configuration: "optimizer.lr"
  std::string key;    // of the TrainSpec: "learning_rate"; the name where that has none
  std::string value;  // as JSON shows it; a text without quotes
};

// "zero_stage: 0 becomes 3, because ..."
std::string describe_deviation(const Deviation& deviation);

// Where the ranks run, seen from this program.
enum class Whereabouts {
  children,      // started by the command, on this machine
  this_machine,  // on this machine, but started by a daemon: a container
  elsewhere,     // on other machines
};

// One training as the operating system sees it: everything needed to start it, and the paths of its output. Paths are
// absolute.
struct LaunchPlan {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;  // added to the caller's
  std::string working_directory;
  std::vector<GeneratedFile> files;  // written before the start
  std::string log_path;              // stdout and stderr
  std::string steps_path;            // StepRecords, one JSON per line; empty: the steps are in the log
  std::string checkpoints_path;      // folder of checkpoints; empty where none are written
  std::string result_path;
  std::string trace_path;  // of the profiler's trace; empty: not profiled
  std::vector<Deviation> deviations;
  std::vector<std::string> mounts;    // into a container: FROM:TO
  std::vector<StatedSetting> stated;  // compared with what the log shows; empty: only common settings are
  std::vector<std::string> remarks;   // for those who read the plan, as sentences
  Whereabouts place = Whereabouts::children;
  bool waits_in_queue = false;               // it may start later: a job, or an image that is fetched first
  std::vector<std::string> cleanup_command;  // ends a job or container that may outlive the command; empty: not needed
  std::string cause_path;  // file in which the launcher says why the run failed or waits; empty: it says so in the log
  std::string by_hand;  // shell commands that do the same without this program, for a short dry run; empty: `command`
};

// Paths of one run's files, absolute.
struct RunPaths {
  std::string folder;  // for generated files and step records
  std::string log, result;
  std::string working_directory;
};

// Where a framework is, as `paths:` or one of its `installations:` in the configuration names it.
struct Checkout {
  std::string installation;  // folder of a checkout or a Python environment; empty: not stated
  std::string config_dir, run_script;
  bool in_image = false;                   // the folder is one of the container's image, not of this machine
  std::optional<std::string> primus = {};  // of a framework that Primus starts too: its folder; "": not stated
};

// The configuration of a model beyond its shape.
struct ModelNotes {
  std::string tokenizer_path;  // a Hugging Face name or a folder
  std::string nemo_recipe, primus_config;
};

// The steps that a profiler records, both included, and the path of its trace without the ending; of every rank: of the
// folder of traces.
struct ProfileWindow {
  Profiler profiler = Profiler::torch;
  int64_t first_step = 1, last_step = 1;
  std::string trace;
  bool whole_run = false;  // all steps and the start: the program marks none for this profiler
  bool of_every_rank = false;
};

struct LaunchRequest {
  TrainSpec spec;
  Platform platform = Platform::cpu;
  PlatformSettings settings;
  ModelNotes model_notes;
  Checkout checkout;  // of this framework
  RunPaths paths;
  std::string own_program;  // path of this program, for the native trainer
  LauncherSettings launch;
  std::optional<ProfileWindow> profile;
  std::vector<std::string> arguments = {};           // additional ones of the framework's program
  ProgramFiles program_files = {};                   // of this program, where an image lacks it
  std::optional<ProfileWindow> profiled_steps = {};  // after the measured ones, of every rank
};

// How the ranks of a training are created.
enum class RankStart {
  alone,     // one process is one rank
  mpi,       // processes that an MPI launcher numbers
  torchrun,  // processes that torch.distributed.run numbers
  per_node,  // one process per node, which starts that node's ranks itself
};

// A framework's program for one training, before a launcher decides how to start its ranks.
struct TrainProgram {
  std::vector<std::string> arguments;  // of one process
  bool has_further_arguments = false;  // the additional ones of the request are in one of the files
  RankStart start = RankStart::alone;
  std::string python;  // torchrun: the Python whose torch.distributed.run starts the arguments
  std::map<std::string, std::string> environment;
  std::vector<GeneratedFile> files;
  std::string working_directory;  // empty: that of the request
  std::string steps_path;         // empty: the steps are in the log
  std::string checkpoints_path;
  std::vector<Deviation> deviations;
  std::vector<StatedSetting> stated;
  std::vector<std::string> remarks;
};

// For a framework whose evaluations and checkpoints we do not control.
void add_training_only_deviations(TrainProgram& program, const TrainSpec& spec);

// The environment variables that a platform's settings become. On a CPU they hide the machine's GPUs from frameworks
// that would use them by default.
std::map<std::string, std::string> platform_environment(const LaunchRequest& request);

// The plan as a shell script: writes the generated files, then runs the command in its working directory with its
// environment.
std::string render_shell(const LaunchPlan& plan);

// The part of that script that writes one file.
std::string render_written_file(const GeneratedFile& file);

// The last part of that script, which needs the files of the plan.
std::string render_command(const LaunchPlan& plan);

// A comment line of a shell script, safe for any text.
std::string render_comment(const std::string& text);

}  // namespace tprimat::suite
