#include "cli/plan_options.h"

#include <fmt/format.h>

#include "base/error.h"
#include "command_line/number_range.h"
#include "planner/goodput.h"
#include "report/draw_plot.h"

namespace tprimat::cli {
namespace {

Check stated() {
  return [](std::string& text) -> std::string {
    return text.empty() ? "is empty; leave the option out, or state it" : "";
  };
}

void add_question_options(CommandLine& verb, PlanModelRequest& request) {
  suite::PlanModelOptions& options = request.question;
  verb.add_option("--scaling", options.scaling, "weak (--gbs grows with the GPUs) or strong: show the efficiency")
      ->type_name("NAME")
      ->check(stated());
  verb.add_option("--plot", request.plot, "Draw --scaling's curves, or --validate's predictions, into a .png or .svg")
      ->type_name("FILE")
      ->check(stated());
  verb.add_option("--tokens", options.tokens, "Tokens to train: 15T, 300B (default: 1T)")
      ->type_name("N")
      ->check(stated());
  verb.add_option("--price", options.price, "USD per GPU and hour: 2.5, or H100=2.5,B200=4")
      ->type_name("LIST")
      ->allow_extra_args(false);
  verb.add_option("--target-days", options.target_days, "Fewest GPUs that train the tokens in so many days")
      ->type_name("DAYS")
      ->check(number_from(1e-3, 1e6));
  verb.add_option("--budget", options.budget_usd, "Quickest plan for at most so many USD")
      ->type_name("USD")
      ->check(number_from(1e-2, 1e13));
  verb.add_flag("--yaml", request.yaml, "Print the fastest layout as a configuration");
}

void add_failure_options(CommandLine& verb, suite::PlanModelOptions& options) {
  const planner::Reliability& published = planner::published_reliability();
  verb.add_option(
          "--mtbf", options.failure_gpu_hours,
          fmt::format("Hours of one GPU between failures (default: {:.0f}, of Llama 3)", published.failure_gpu_hours))
      ->type_name("HOURS")
      ->check(number_from(1.0, 1e12));
  verb.add_option("--restart-minutes", options.restart_minutes,
                  fmt::format("From a failure until training goes on, but for reading the checkpoint (default: {:.0f})",
                              published.restart_seconds / 60))
      ->type_name("MINUTES")
      ->check(number_from(0.0, 1e5));
  verb.add_option("--checkpoint-bandwidth", options.checkpoint_bandwidth_gb,
                  fmt::format("GB/s of the storage for all GPUs together (default: {:.3f} per GPU, of Llama 3)",
                              published.storage_bandwidth_per_gpu / 1e9))
      ->type_name("GB/S")
      ->check(number_from(1e-3, 1e7));
  verb.add_option("--node-noise", options.node_noise_percent,
                  "Standard deviation of a node's step time in percent (default: as calibrated)")
      ->type_name("PERCENT")
      ->check(number_from(0.0, 100.0));
}

}  // namespace

void add_plan_model_options(CommandLine& verb, PlanModelRequest& request) {
  suite::PlanModelOptions& options = request.question;
  verb.add_option("model", options.model, "Model of the configuration or of the catalogue")->type_name("MODEL");
  verb.add_option("--gpu", options.gpu, "GPUs to plan for, side by side")->type_name("LIST")->allow_extra_args(false);
  verb.add_option("--gpus", options.gpus, "How many: 64, 8,16,64 or 8..16384")
      ->type_name("LIST")
      ->allow_extra_args(false);
  verb.add_option("--framework", options.framework, "Program that trains: megatron_core, fsdp2, nanotron, ...")
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option("--precision", options.precision, "bf16, fp16, fp8 or fp4; of cpu also fp32")
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option("--seq", options.sequence_length,
                  "Tokens per sequence (default: the configuration's; of the catalogue's models at most 8192)")
      ->check(number_from(int64_t{1}, int64_t{1} << 24));
  verb.add_option("--gbs", options.global_batch,
                  "Sequences per step (default: the configuration's; of the catalogue's models 512 or more)")
      ->check(number_from(int64_t{1}, int64_t{1} << 30));
  verb.add_flag("--zero-bubble", options.zero_bubble, "Pipelines fill their waiting with gradients of weights (ZB-H1)");
  verb.add_option("--top", options.top, "Layouts to show")->capture_default_str()->check(number_from(1, 10000));
  add_question_options(verb, request);
  add_failure_options(verb, options);
}

void check_plan_request(const PlanModelRequest& request, bool prints_json) {
  if (!request.plot.empty() && request.question.scaling.empty())
    throw Error(Problem{"draws a scaling curve, and needs --scaling", "--plot", "add --scaling weak or strong"});
  if (!request.plot.empty()) results::require_plot_format(request.plot, "--plot");
  if (!request.yaml) return;
  const auto refuse = [](const char* what) { throw Error(Problem{what, "--yaml", "leave one of the two out"}); };
  if (prints_json) refuse("prints a configuration, and --json a document");
  if (request.question.target_days > 0) refuse("prints a configuration, and no answer to --target-days");
  if (request.question.budget_usd > 0) refuse("prints a configuration, and no answer to --budget");
}

}  // namespace tprimat::cli
