#include "cli/plan_model.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "command_line/output_target.h"
#include "command_line/value_checks.h"
#include "planner/training_outlook.h"
#include "process/process.h"
#include "report/draw_plot.h"
#include "report/plan_plots.h"
#include "text/json_fields.h"

namespace tprimat::cli {
namespace {

Check stated() {
  return [](std::string& text) -> std::string {
    return text.empty() ? "is empty; give it a value, or omit the option" : "";
  };
}

void add_machine_options(CommandLine& verb, suite::MachineOptions& options) {
  verb.add_option("--machine", options.probes,
                  "Plan for a cluster of nodes like the one that these outputs of tprimat probe --json measured")
      ->type_name("LIST")
      ->allow_extra_args(false);
  verb.add_option("--network-gbps", options.network_gbps,
                  "With --machine: network between nodes, per GPU and direction; for CPUs, per node (default: the "
                  "catalogue's)")
      ->type_name("GBIT/S")
      ->check(number_from(1e-3, 1e6));
  verb.add_option("--link-bandwidth", options.link_gb,
                  "With --machine: links inside a node, per GPU and direction (default: measured, or the catalogue's)")
      ->type_name("GB/S")
      ->check(number_from(1e-3, 1e6));
  verb.add_option("--memory-gb", options.memory_gb,
                  "With --machine: memory of a GPU; for CPUs, of a node (default: measured, or the catalogue's)")
      ->type_name("GB")
      ->check(number_from(1e-3, 1e6));
  verb.add_option(
          "--gpus-per-node", options.gpus_per_node,
          "With --machine: GPUs joined by fast links; for CPUs, ranks per node (default: the catalogue's, or all "
          "ranks)")
      ->type_name("N")
      ->check(number_from(int64_t{1}, int64_t{1} << 20));
}

void add_question_options(CommandLine& verb, PlanModelRequest& request) {
  suite::PlanModelOptions& options = request.question;
  verb.add_option("--scaling", options.scaling, "Show scaling efficiency: weak (--gbs grows with the GPUs) or strong")
      ->choices(choices_of<planner::Scaling>())
      ->type_name("NAME")
      ->check(stated());
  verb.add_option("--plot", request.plot,
                  "Plot the --scaling curves or --validate predictions to a .png or .svg file; -: SVG on "
                  "stdout")
      ->type_name("FILE")
      ->check(stated());
  verb.add_option("--tokens", options.tokens, "Tokens to train: 15T, 300B (default: 1T)")
      ->type_name("N")
      ->check(stated());
  verb.add_option("--price", options.price, "USD per GPU and hour: 2.5, or H100=2.5,B200=4")
      ->type_name("LIST")
      ->allow_extra_args(false);
  verb.add_option("--target-days", options.target_days, "Find the fewest GPUs that train the tokens in this many days")
      ->type_name("DAYS")
      ->check(number_from(1e-3, 1e6));
  verb.add_option("--budget", options.budget_usd, "Find the fastest plan that costs at most this many USD")
      ->type_name("USD")
      ->check(number_from(1e-2, 1e13));
  verb.add_flag("--yaml", request.yaml, "Print the fastest layout as a configuration");
}

void add_expert_options(CommandLine& verb, suite::PlanModelOptions& options) {
  verb.add_option("--recipe", options.recipe, "Scaling of FP8: tensorwise (default), rowwise, or mxfp8 (blocks of 32)")
      ->choices(choices_of<planner::Recipe>())
      ->type_name("NAME")
      ->check(stated());
  verb.add_option(
          "--routing", options.routing,
          "Mixture of experts: learned, or balanced as in benchmarks (default: the configuration's, else learned)")
      ->choices(choices_of<Routing>())
      ->type_name("NAME")
      ->check(stated());
  verb.add_option("--dispatcher", options.dispatcher,
                  "Mixture of experts: how tokens are exchanged (default: the configuration's, else alltoall)")
      ->choices(choices_of<Dispatcher>())
      ->type_name("NAME")
      ->check(stated());
  verb.add_option("--expert-load", options.expert_load,
                  "Mixture of experts: tokens on the fullest rank over the mean (default: as calibrated for --routing)")
      ->type_name("FACTOR")
      ->check(number_from(1.0, 1e4));
}

void add_tuning_options(CommandLine& verb, suite::PlanModelOptions& options) {
  verb.add_flag("--tuned", options.tuned,
                "Mixture of experts: plan with what Megatron-Bridge's performance recipes set: graphs, overlap, 2-byte "
                "moments and gradients, hybridep");
  verb.add_option("--graphs", options.graphs,
                  "Mixture of experts: CUDA graphs of parts of layers or of whole steps (default: none)")
      ->choices(choices_of<planner::Graphs>())
      ->type_name("NAME")
      ->check(stated());
  verb.add_flag("--expert-overlap", options.expert_overlap,
                "Mixture of experts: hide exchanges of tokens behind another micro-batch, where a layout can");
  verb.add_option("--moment-bytes", options.moment_bytes, "Bytes of each of Adam's moments: 4 (default) or 2")
      ->type_name("N")
      ->check(one_of({"2", "4"}));
  verb.add_option("--gradient-bytes", options.gradient_bytes,
                  "Bytes in which gradients are summed: 2 or 4 (default: as the framework does)")
      ->type_name("N")
      ->check(one_of({"2", "4"}));
}

void add_failure_options(CommandLine& verb, suite::PlanModelOptions& options) {
  const planner::Reliability& published = planner::published_reliability();
  verb.add_option(
          "--mtbf", options.failure_gpu_hours,
          fmt::format("Hours between failures of one GPU (default: {:.0f}, from Llama 3)", published.failure_gpu_hours))
      ->type_name("HOURS")
      ->check(number_from(1.0, 1e12));
  verb.add_option(
          "--restart-minutes", options.restart_minutes,
          fmt::format("Minutes from failure to resumed training, excluding the checkpoint read (default: {:.0f})",
                      published.restart_seconds / 60))
      ->type_name("MINUTES")
      ->check(number_from(0.0, 1e5));
  verb.add_option("--checkpoint-bandwidth", options.checkpoint_bandwidth_gb,
                  fmt::format("Storage bandwidth for all GPUs together (default: {:.3f} per GPU, from Llama 3)",
                              published.storage_bandwidth_per_gpu / 1e9))
      ->type_name("GB/S")
      ->check(number_from(1e-3, 1e7));
  verb.add_option("--node-noise", options.node_noise_percent,
                  "Standard deviation of a node's step time, in percent (default: as calibrated)")
      ->type_name("PERCENT")
      ->check(number_from(0.0, 100.0));
}

}  // namespace

void add_plan_model_options(CommandLine& verb, PlanModelRequest& request) {
  suite::PlanModelOptions& options = request.question;
  verb.add_option("model", options.model, "Model from the configuration or the catalogue")->type_name("MODEL");
  verb.add_option("--gpu", options.gpu, "GPUs to plan for, side by side")->type_name("LIST")->allow_extra_args(false);
  verb.add_option("--gpus", options.gpus, "Number of GPUs: 64, 8,16,64 or 8..16384")
      ->type_name("LIST")
      ->allow_extra_args(false);
  add_machine_options(verb, options.machine);
  verb.add_option("--framework", options.framework,
                  "Framework to predict: megatron_core, fsdp2, nanotron, prim (AMD), ...")
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option("--precision", options.precision, "bf16, fp16, fp8 or fp4; with --gpu cpu also fp32")
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option("--seq", options.sequence_length,
                  "Tokens per sequence (default: the configuration's; for catalogue models at most 8192)")
      ->check(number_from(int64_t{1}, int64_t{1} << 24));
  verb.add_option("--gbs", options.global_batch,
                  "Sequences per step (default: the configuration's; for catalogue models 512 or more)")
      ->check(number_from(int64_t{1}, int64_t{1} << 30));
  add_expert_options(verb, options);
  add_tuning_options(verb, options);
  verb.add_flag("--zero-bubble", options.zero_bubble, "Fill pipeline bubbles with weight gradients (ZB-H1)");
  verb.add_flag("--lora", options.lora, "Plan fine-tuning that trains low-rank adapters alone");
  verb.add_option("--top", options.top, "Layouts to show")->capture_default_str()->check(number_from(1, 10000));
  add_question_options(verb, request);
  add_failure_options(verb, options);
}

void draw_plan_plot(const std::string& path, const results::Picture& picture) {
  LocalRunner runner;
  if (names_stdout(path)) return write_output(path, results::render_svg(picture));
  results::require_drawn(runner, picture, path);
}

void check_plan_request(const PlanModelRequest& request, bool prints_json) {
  if (!request.plot.empty() && request.question.scaling.empty())
    throw Error(Problem{"draws scaling curves and needs --scaling", "--plot", "add --scaling weak or strong"});
  if (!request.plot.empty() && !names_stdout(request.plot)) results::require_plot_format(request.plot, "--plot");
  require_one_on_stdout({{"--json", prints_json}, {"--yaml", request.yaml}, {"--plot -", names_stdout(request.plot)}});
  if (!request.yaml) return;
  const auto refuse = [](const char* what) { throw Error(Problem{what, "--yaml", "omit one of the two"}); };
  if (prints_json) refuse("prints YAML and cannot be combined with --json");
  if (request.question.target_days > 0) refuse("prints only a configuration and cannot answer --target-days");
  if (request.question.budget_usd > 0) refuse("prints only a configuration and cannot answer --budget");
}

ExitStatus plan_model(const Session& session, const PlanModelRequest& request,
                      const suite::LoadedExperiment& configured, const planner::PlannerSettings& planner) {
  check_plan_request(request, session.json);
  const suite::PlanQuestion question = suite::read_plan_question(request.question, configured, planner);
  if (request.yaml && question.cases.size() != 1)
    throw Error(Problem{"needs one GPU type and one GPU count", "--yaml", "for instance --gpu H100 --gpus 64"});
  for (const std::string& sentence : question.left_out) log_note(sentence);
  const planner::PlanComparison comparison =
      planner::compare_plans(question.cases, planner.parameters, question.compared);
  if (request.yaml)
    print_result(suite::render_fastest_config(question, comparison));
  else
    print_beside_output(session.json ? print_json(to_json(comparison)) : planner::render_plan_comparison(comparison),
                        names_stdout(request.plot));
  if (!request.plot.empty()) {
    draw_plan_plot(request.plot, results::plot_scaling(comparison));
    if (!names_stdout(request.plot)) log_note("wrote " + request.plot);
  }
  return comparison.is_answered() ? ExitStatus::done : ExitStatus::work_failed;
}

}  // namespace tprimat::cli
