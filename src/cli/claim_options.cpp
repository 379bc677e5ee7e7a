#include "cli/claim_options.h"

#include <fmt/format.h>

#include "base/error.h"
#include "command_line/value_checks.h"

namespace tprimat::cli {
namespace {

using planner::Convention;

constexpr double k_max_rate = 1e9, k_max_step = 1e6;
const std::vector<std::string>& precisions() {
  static const std::vector<std::string> all = {"bf16", "fp16", "fp8", "mxfp8", "fp4", "nvfp4"};
  return all;
}

void add_figures(CommandLine& verb, ClaimOptions& options) {
  verb.add_option("--tokens-per-second-per-gpu", options.rate_per_gpu, "The claim: tokens/s per GPU")
      ->type_name("N")
      ->check(number_from(1e-3, k_max_rate));
  verb.add_option("--tokens-per-second", options.rate, "The claim: tokens/s of the whole job; needs --gpus")
      ->type_name("N")
      ->check(number_from(1e-3, 1e12));
  verb.add_option("--step-time", options.step_seconds, "The claim: seconds per step; needs --gbs and --gpus")
      ->type_name("SECONDS")
      ->check(number_from(1e-6, k_max_step));
  verb.add_option("--mfu", options.mfu_percent, "The claim: model FLOPs utilization, in percent")
      ->type_name("PERCENT")
      ->check(number_from(1e-3, 1e6));
  verb.add_option("--tflops-per-gpu", options.teraflops, "The claim: TFLOP/s per GPU")
      ->type_name("N")
      ->check(number_from(1e-3, k_max_rate));
  verb.add_option("--convention", options.convention,
                  "How --mfu and --tflops-per-gpu count FLOPs (default: full, as PaLM defined MFU)")
      ->choices(choices_of<Convention>())
      ->type_name("NAME")
      ->check(name_of<Convention>());
}

void add_layout(CommandLine& verb, ClaimOptions& options) {
  const auto add = [&](const char* name, std::optional<int64_t>& target, const char* doc, int digits = 20) {
    verb.add_option(name, target, doc)->type_name("N")->check(number_from(int64_t{1}, int64_t{1} << digits));
  };
  add("--gpus", options.gpus, "Number of GPUs");
  add("--seq", options.sequence_length, "Tokens per sequence (default: 4096, or the model's own if that is less)", 24);
  add("--gbs", options.global_batch, "Sequences per step", 30);
  add("--mbs", options.micro_batch, "Sequences per micro-batch");
  add("--tp", options.tensor, "Tensor-parallel ranks");
  add("--pp", options.pipeline, "Pipeline stages");
  add("--vp", options.chunks, "Virtual stages per rank");
  add("--cp", options.context, "Context-parallel ranks");
  add("--ep", options.expert, "Expert-parallel ranks");
}

void add_settings(CommandLine& verb, ClaimOptions& options) {
  verb.add_option("--gpu", options.gpu, "GPU: H100, B200, MI300X, ...")->type_name("NAME");
  verb.add_option("--precision", options.precision,
                  "Number format of the matrix products: bf16, fp16, fp8, mxfp8, fp4 or nvfp4")
      ->choices(precisions())
      ->type_name("NAME")
      ->check(one_of(precisions()))
      ->capture_default_str();
  verb.add_option("--framework", options.framework, "Program that trained: Megatron-Core, torchtitan, NeMo, ...")
      ->type_name("NAME");
  verb.add_option("--routing", options.routing, "Routing to experts: learned, or balanced by force")
      ->choices(choices_of<Routing>())
      ->type_name("NAME")
      ->check(name_of<Routing>());
  verb.add_option("--recompute", options.recompute, "Activation recomputation: none, selective or full")
      ->choices(choices_of<Recompute>())
      ->type_name("NAME")
      ->check(name_of<Recompute>());
  verb.add_flag("--adapters", options.adapters, "The run trained low-rank adapters (LoRA), not all weights");
}

bool states_layout(const ClaimOptions& o) {
  return o.tensor || o.pipeline || o.chunks || o.context || o.expert || o.micro_batch;
}

[[noreturn]] void refuse(const std::string& what, const std::string& option, const std::string& hint) {
  throw Error(Problem{what, option, hint});
}

std::string require_gpu(const std::string& name) {
  if (name.empty()) refuse("a claim needs a GPU", "--gpu", "for instance --gpu H100");
  const planner::Machine* machine = planner::find_machine(name);
  if (machine == nullptr) machine = planner::find_printed_machine(name);
  if (machine != nullptr) return machine->id;
  std::vector<std::string> names;
  for (const planner::Machine& each : planner::machines()) names.push_back(each.id);
  refuse(fmt::format("no GPU '{}' is known", printable(name.substr(0, 64))), "--gpu",
         suggest_word_or(name, names, "one of " + join(names, ", ")));
}

std::string require_framework(const ClaimOptions& options) {
  if (options.framework.empty()) return states_layout(options) ? "Megatron-Core" : "";
  const planner::Family* family = planner::find_family(options.framework);
  if (family != nullptr) return family->full_name;
  if (planner::find_printed_family(options.framework) != nullptr) return options.framework;
  std::vector<std::string> names;
  for (const planner::Family& each : planner::families()) names.push_back(each.id);
  refuse(fmt::format("no framework '{}' is known", printable(options.framework.substr(0, 64))), "--framework",
         suggest_word_or(options.framework, names, "one of " + join(names, ", ")));
}

void require_figures(const ClaimOptions& o) {
  if (!o.rate_per_gpu && !o.rate && !o.step_seconds && !o.mfu_percent && !o.teraflops)
    refuse("a claim needs a figure", "claim",
           "add --tokens-per-second-per-gpu, --tokens-per-second, --step-time, --mfu or --tflops-per-gpu");
  if (o.rate && !o.gpus)
    refuse("is the rate of the whole job and needs the number of GPUs", "--tokens-per-second", "add --gpus N");
  if (o.step_seconds && !(o.gpus && o.global_batch))
    refuse("needs the number of GPUs and the batch", "--step-time", "add --gpus N and --gbs SEQUENCES");
  if (!o.convention.empty() && !o.mfu_percent && !o.teraflops)
    refuse("states how --mfu or --tflops-per-gpu is counted, but neither is given", "--convention", "omit it");
}

void set(planner::PublishedRow& row, const char* column, const std::optional<int64_t>& value) {
  if (value) row.cells[column] = std::to_string(*value);
}

// All digits, never scientific.
void set(planner::PublishedRow& row, const char* column, const std::optional<double>& value) {
  if (!value) return;
  std::string text = fmt::format("{:.6f}", *value);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  row.cells[column] = text;
}

void fill_row(planner::PublishedRow& row, const ClaimOptions& o) {
  set(row, "n_gpus", o.gpus), set(row, "gbs", o.global_batch), set(row, "mbs", o.micro_batch);
  set(row, "tp", o.tensor), set(row, "pp", o.pipeline), set(row, "vp", o.chunks);
  set(row, "cp", o.context), set(row, "ep", o.expert);
  set(row, "tokens_per_s_per_gpu", o.rate_per_gpu), set(row, "tokens_per_s", o.rate);
  set(row, "step_time_s", o.step_seconds), set(row, "mfu_pct", o.mfu_percent);
  set(row, "tflops_per_gpu", o.teraflops);
  if (!o.recompute.empty()) row.cells["recompute"] = o.recompute;
  std::string notes = o.adapters ? "LoRA" : "";
  if (!o.routing.empty()) notes += o.routing == "balanced" ? "; balanced" : "; real routing";
  row.cells["notes"] = notes;
}

}  // namespace

void add_claim_options(CommandLine& verb, ClaimOptions& options) {
  verb.add_option("model", options.model, "Model from the configuration or the catalogue, or the file of a result")
      ->type_name("MODEL|RESULT");
  add_settings(verb, options);
  add_layout(verb, options);
  add_figures(verb, options);
  Option* tables = verb.add_option("--table", options.tables, "Judge every row of these tables of results")
                       ->type_name("TABLE")
                       ->excludes(verb.get_option("model"));
  verb.add_option("--published", options.published, "Compare with these tables instead of the built-in ones")
      ->type_name("TABLE");
  verb.add_flag("--unseen", options.unseen,
                "With --table: compare each row only with rows of other sources, models or GPUs")
      ->needs(tables);
}

planner::Claim read_stated_claim(const ClaimOptions& options, const suite::Experiment& experiment) {
  const KnownModel known = suite::require_counted(experiment, options.model, "MODEL");
  planner::Claim claim;
  planner::PublishedRow& row = claim.row;
  row.cells["model"] = options.model;
  row.cells["gpu"] = require_gpu(options.gpu);
  row.cells["precision"] = options.precision;
  row.cells["framework"] = require_framework(options);
  require_figures(options);
  constexpr int64_t k_usual_length = 4096;
  const int64_t own = known.spec.max_position_embeddings;
  const int64_t length = own > 0 ? std::min(own, k_usual_length) : k_usual_length;
  row.cells["seq"] = std::to_string(options.sequence_length.value_or(length));
  fill_row(row, options);
  claim.shape = known.spec;
  if (!options.convention.empty()) claim.convention = parse_enum<Convention>(options.convention);
  return claim;
}

void require_no_settings(const ClaimOptions& o) {
  const bool figures = o.rate_per_gpu || o.rate || o.step_seconds || o.mfu_percent || o.teraflops;
  const bool settings = !o.gpu.empty() || o.gpus || o.sequence_length || o.global_batch || states_layout(o) ||
                        !o.framework.empty() || !o.routing.empty() || !o.recompute.empty() || o.adapters;
  if (figures || settings)
    refuse("a result states its own settings and figures", printable(o.model.substr(0, 100)),
           "omit the other options, or name a model instead of the file");
}

}  // namespace tprimat::cli
