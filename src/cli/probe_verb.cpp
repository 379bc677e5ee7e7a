#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>

#include "base/error.h"
#include "cli/hand_over.h"
#include "cli/session_config.h"
#include "cli/verbs.h"
#include "command_line/value_checks.h"
#include "spec/train_spec.h"
#include "text/json.h"

namespace tprimat::cli {
namespace {

constexpr const char* k_probe_examples =
    "  tprimat probe                                     matrix products and memory, about 12 s\n"
    "  tprimat probe --threads 1 --json\n"
    "  tprimat probe --model llama                       the matrix products of a configured model\n"
    "  tprimat probe --model mixtral_8x7b                a model of the catalogue; routed experts in groups\n"
    "  tprimat probe --device nvd                        this machine's first NVIDIA GPU, about a minute\n"
    "  mpirun -n 2 tprimat probe --collectives           collectives over MPI, about 10 s\n";

struct ProbeOptions {
  int threads = 0;
  std::string device = "cpu";
  std::string model;
  bool collectives = false;
};

TrainSpec read_model(const Session& session, const std::string& model) {
  const suite::Experiment experiment = load_session_experiment(session);
  TrainSpec spec;
  spec.model = suite::require_counted(experiment, model, "--model").spec;
  spec.micro_batch_size = experiment.micro_batch_size;
  spec.sequence_length = experiment.sequence_length;
  return spec;
}

// A file in memory that the trainer, in this process's place, finds at the path returned.
std::string keep_for_trainer(const std::string& text) {
  const int file = ::memfd_create("train_spec.json", 0);
  if (file < 0 || ::write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw Error(Problem{"cannot keep the model's specification in memory", "--model", ""}, ExitStatus::work_failed);
  return fmt::format("/proc/self/fd/{}", file);
}

ExitStatus probe(const Session& session, const ProbeOptions& options) {
  std::vector<std::string> words = {"probe", "--device", options.device};
  if (options.threads > 0) words.insert(words.end(), {"--threads", fmt::format("{}", options.threads)});
  if (options.collectives) words.push_back("--collectives");
  if (!options.model.empty())
    words.insert(words.end(),
                 {"--spec", keep_for_trainer(print_json(train_spec_to_json(read_model(session, options.model))))});
  if (session.json) words.push_back("--json");
  if (session.quiet) words.push_back("--quiet");
  if (session.verbose) words.push_back("--verbose");
  if (session.no_color) words.push_back("--no-color");
  become_trainer(std::move(words));
}

}  // namespace

void add_probe_verb(CommandLine& program, Session& session) {
  CommandLine* verb = add_verb(program, session, "probe",
                               "Measure this machine's rates: matrix products, memory, collectives", k_probe_examples);
  add_json_option(*verb, session);
  add_config_options(*verb, session);
  auto options = std::make_shared<ProbeOptions>();
  verb->add_option("--threads", options->threads, "CPU threads (default: all that this process may use)")
      ->check(number_from(0, 4096));
  verb->add_option("--device", options->device,
                   "Device to measure: cpu, or nvd or amd for the first GPU, or one GPU per rank (default: cpu)")
      ->choices(choices_of<Platform>())
      ->type_name("DEVICE");
  auto* model =
      verb->add_option("--model", options->model,
                       "Measure the matrix products of this model, configured or of the catalogue, over MBS x SL "
                       "tokens")
          ->type_name("NAME");
  verb->add_flag("--collectives", options->collectives, "Measure collectives between the ranks that mpirun started")
      ->excludes(model);
  verb->callback([&session, options] { session.action = [&session, options] { return probe(session, *options); }; });
}

}  // namespace tprimat::cli
