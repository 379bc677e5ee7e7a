#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "command_line/value_checks.h"
#include "gpu_module/load_gpu_module.h"
#include "program/probe_report.h"
#include "program/verbs.h"
#include "spec/train_spec.h"
#include "text/json_fields.h"
#include "train/backend.h"

namespace tprimat::engine {
namespace {

constexpr const char* k_probe_examples =
    "  tprimat-train probe                                     matrix products and memory, about 12 s\n"
    "  tprimat-train probe --threads 1 --json\n"
    "  tprimat-train probe --precision bf16 --json             the peak of one format, and memory, about 3 s\n"
    "  tprimat-train probe --spec train_spec.json              the products of a training's model\n"
    "  tprimat-train probe --device nvd                        this machine's first NVIDIA GPU, about a minute\n"
    "  mpirun -n 2 tprimat-train probe --collectives           collectives over MPI, about 10 s\n";

struct ProbeOptions {
  int threads = 0;
  std::string device = "cpu";
  std::string spec_path;
  std::vector<std::string> precisions;
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
  log_note("measuring for about 12 seconds; other load on this machine lowers the results");
  const ProbeReport report = run_cpu_probes(options.threads);
  warn(list_disturbances(report));
  return print_report(session, report, render_probe);
}

ExitStatus probe_precisions(const Session& session, const ProbeOptions& options) {
  std::vector<Precision> precisions;
  for (const std::string& name : options.precisions) precisions.push_back(parse_choice<Precision>(name, "--precision"));
  return print_report(session, run_peak_probe(precisions, options.threads), render_probe);
}

struct ProbedModel {
  ModelSpec spec;
  int64_t tokens = 0;  // MBS·SL
};

ProbedModel read_model(const ProbeOptions& options) {
  const Json json = parse_json(read_file(options.spec_path), options.spec_path);
  const TrainSpec spec = train_spec_from_json(json, options.spec_path);
  const ProbedModel model{spec.model, spec.micro_batch_size * spec.sequence_length};
  log_note(fmt::format("measuring the products of {} over {} tokens; large ones take seconds each", model.spec.name,
                       model.tokens));
  return model;
}

ExitStatus probe_model(const Session& session, const ProbeOptions& options) {
  const auto [model, tokens] = read_model(options);
  const ModelProbeReport report = run_model_probes(model, tokens, options.threads);
  warn(list_disturbances(report));
  return print_report(session, report, render_model_probe);
}

GpuProbePlan plan_gpu_probe(const ProbedModel& model) {
  GpuProbePlan plan;
  plan.products = model_products(model.spec, model.tokens, k_any_product_flops);
  plan.groups = expert_products(model.spec, model.tokens, k_gpu_group_limits);
  plan.measures_memory = false;
  return plan;
}

ExitStatus probe_gpu(const Session& session, const ProbeOptions& options, Platform platform) {
  const GpuModule& module = load_gpu_module(platform == Platform::nvd ? GpuVendor::nvd : GpuVendor::amd);
  const std::optional<ProbedModel> model =
      options.spec_path.empty() ? std::nullopt : std::optional(read_model(options));
  if (!model) log_note("measuring for about a minute; other load on this GPU lowers the results");
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
    throw Error(Problem{"collectives need several ranks, but this program runs alone", "--collectives",
                        "start it with mpirun -n 2 tprimat probe --collectives"});
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
  if (!options.precisions.empty()) return probe_precisions(session, options);
  return options.spec_path.empty() ? probe_machine(session, options) : probe_model(session, options);
}

}  // namespace

void add_probe_verb(CommandLine& program, Session& session) {
  CommandLine* verb = add_verb(program, session, "probe",
                               "Measure this machine's rates: matrix products, memory, collectives", k_probe_examples);
  add_json_option(*verb, session);
  auto options = std::make_shared<ProbeOptions>();
  verb->add_option("--threads", options->threads, "CPU threads (default: all that this process may use)")
      ->check(number_from(0, 4096));
  verb->add_option("--device", options->device,
                   "Device to measure: cpu, or nvd or amd for the first GPU, or one GPU per rank (default: cpu)")
      ->choices(choices_of<Platform>())
      ->type_name("DEVICE");
  auto* spec = verb->add_option("--spec", options->spec_path,
                                "Measure the products of this training's model, over MBS x SL tokens (JSON)")
                   ->type_name("FILE");
  auto* precision = verb->add_option("--precision", options->precisions,
                                     "Measure only the CPU peaks in these precisions, and memory bandwidth")
                        ->type_name("LIST")
                        ->delimiter(',')
                        ->excludes(spec);
  verb->add_flag("--collectives", options->collectives, "Measure collectives between the ranks that mpirun started")
      ->excludes(spec)
      ->excludes(precision);
  verb->callback([&session, options] { session.action = [&session, options] { return probe(session, *options); }; });
}

}  // namespace tprimat::engine
