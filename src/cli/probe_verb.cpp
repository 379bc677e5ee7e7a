#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "cli/gpu_probe_report.h"
#include "cli/number_range.h"
#include "cli/parse_choice.h"
#include "cli/probe_report.h"
#include "cli/verbs.h"
#include "config/load.h"
#include "ops/gpu_module.h"
#include "text/format.h"
#include "text/json_fields.h"
#include "train/backend.h"

namespace tprimat {
namespace {

constexpr const char* k_probe_examples =
    "  tprimat probe                                     matrix products and memory, about 12 s\n"
    "  tprimat probe --threads 1 --json\n"
    "  tprimat probe --model llama                       the products of a model of the configuration\n"
    "  tprimat probe --device nvd                        this machine's first NVIDIA GPU, about a minute\n"
    "  mpirun -n 2 tprimat probe --collectives           what MPI achieves between ranks, about 10 s\n";

struct ProbeOptions {
  int threads = 0;
  std::string device = "cpu";
  std::string model;
  bool collectives = false;
};

template <class Report>
ExitStatus print_report(const Session& session, const Report& report, std::string (*render)(const Report&)) {
  print_result(session.json ? print_json(to_json(report)) : render(report));
  return ExitStatus::done;
}

void warn(const std::vector<std::string>& disturbances) {
  for (const std::string& sentence : disturbances) log_warning(sentence);
}

ExitStatus probe_machine(const Session& session, const ProbeOptions& options) {
  log_note("measuring for about 12 seconds; other work on this machine lowers the figures");
  const ProbeReport report = run_cpu_probes(options.threads);
  warn(list_disturbances(report));
  return print_report(session, report, render_probe);
}

const ModelEntry& require_model(const Experiment& experiment, const std::string& name) {
  if (const ModelEntry* entry = experiment.find_model_entry(name)) return *entry;
  std::vector<std::string> names;
  for (const ModelEntry& entry : experiment.models) names.push_back(entry.spec.name);
  const std::string near = nearest_word(name, names);
  throw Error(Problem{fmt::format("the configuration has no model '{}'; it has {}", name, fmt::join(names, ", ")),
                      "--model", near.empty() ? "" : fmt::format("did you mean '{}'?", near)});
}

struct ProbedModel {
  ModelSpec spec;
  int64_t tokens = 0;  // MBS·SL
};

ProbedModel read_model(const Session& session, const ProbeOptions& options) {
  ConfigSources sources;
  if (!session.config_path.empty()) sources.path = session.config_path;
  sources.overrides = session.overrides;
  sources.environment = current_environment();
  const Experiment experiment = load_experiment(sources).experiment;
  const ProbedModel model{require_model(experiment, options.model).spec,
                          experiment.micro_batch_size * experiment.sequence_length};
  log_note(fmt::format("measuring the products of {} over {} tokens; large ones take seconds each", model.spec.name,
                       model.tokens));
  return model;
}

ExitStatus probe_model(const Session& session, const ProbeOptions& options) {
  const auto [model, tokens] = read_model(session, options);
  const ModelProbeReport report = run_model_probes(model, tokens, options.threads);
  warn(list_disturbances(report));
  return print_report(session, report, render_model_probe);
}

GpuProbePlan plan_gpu_probe(const ProbedModel& model) {
  GpuProbePlan plan;
  plan.products = model_products(model.spec, model.tokens, k_any_product_flops);
  plan.measures_memory = false;
  return plan;
}

ExitStatus probe_gpu(const Session& session, const ProbeOptions& options, Platform platform) {
  const GpuModule& module = load_gpu_module(platform == Platform::nvd ? GpuVendor::nvd : GpuVendor::amd);
  const std::optional<ProbedModel> model =
      options.model.empty() ? std::nullopt : std::optional(read_model(session, options));
  if (!model) log_note("measuring for about a minute; other work on this GPU lowers the figures");
  const auto device = module.make_device(0);
  const auto watch = watch_gpu(platform, 0);
  GpuProbeReport report =
      run_gpu_probes({device.get(), module.f32_ops, module.bf16_ops, module.f16_ops, module.products},
                     model ? plan_gpu_probe(*model) : standard_gpu_plan(), *watch);
  if (model) {
    report.model = model->spec.name;
    report.tokens = model->tokens;
  }
  warn(list_disturbances(report));
  return print_report(session, report, render_gpu_probe);
}

CollectiveReport measure_between_gpus(Communicator& world, Platform platform) {
  const Backend backend = backend_of(platform, world, launcher_place());
  const auto group = backend.connect(world.split(0, world.rank()));
  std::vector<int64_t> sizes = k_collective_bytes;
  sizes.push_back(int64_t{1} << 30);
  return measure_collectives(*group, *backend.device, sizes);
}

ExitStatus probe_collectives(const Session& session, Platform platform) {
  const auto world = make_world_communicator();
  if (world->size() == 1)
    throw Error(Problem{"collectives need several ranks, and this program runs alone", "--collectives",
                        "mpirun -n 2 tprimat probe --collectives"});
  const bool speaks = world->rank() == 0;
  if (speaks) log_note("measuring for about 10 seconds");
  const CollectiveReport report =
      platform == Platform::cpu ? measure_collectives(*world) : measure_between_gpus(*world, platform);
  if (!speaks) return ExitStatus::done;
  warn(list_disturbances(report));
  return print_report(session, report, render_collectives);
}

ExitStatus probe(const Session& session, const ProbeOptions& options) {
  const auto platform = parse_choice<Platform>(options.device, "--device");
  if (options.collectives) return probe_collectives(session, platform);
  if (platform != Platform::cpu) return probe_gpu(session, options, platform);
  return options.model.empty() ? probe_machine(session, options) : probe_model(session, options);
}

}  // namespace

void add_probe_verb(CLI::App& program, Session& session) {
  CLI::App* verb =
      add_verb(program, session, "probe", "Measure what this machine achieves: matrix products, memory, collectives",
               k_probe_examples);
  add_json_option(*verb, session);
  add_config_options(*verb, session);
  auto options = std::make_shared<ProbeOptions>();
  verb->add_option("--threads", options->threads, "CPU threads (default: all that this process may use)")
      ->check(number_from(0, 4096));
  verb->add_option("--device", options->device,
                   "What is measured: cpu, or GPUs: nvd, amd; the first, or one for each rank (default: cpu)")
      ->type_name("DEVICE");
  auto* model = verb->add_option("--model", options->model,
                                 "Measure the products of this model of the configuration, over MBS x SL tokens")
                    ->type_name("NAME");
  verb->add_flag("--collectives", options->collectives, "Measure collectives between the ranks that mpirun started")
      ->excludes(model);
  verb->callback([&session, options] { session.action = [&session, options] { return probe(session, *options); }; });
}

}  // namespace tprimat
