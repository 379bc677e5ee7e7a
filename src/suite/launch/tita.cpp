#include <fmt/format.h>

#include "launch/installed.h"
#include "launch/python_framework.h"
#include "launch/titan_limits.h"
#include "launch/torchtitan_config.h"

namespace tprimat::suite {
namespace {

constexpr std::string_view k_titan_package = "torchtitan";

// Precision of products differs from that of the weights only where FSDP2 gathers them, or where nothing is split.
void add_layout_limits(Refusals& refusals, const TrainSpec& spec) {
  const ParallelSpec& layout = spec.parallel;
  const bool sharded = shards_with_fsdp(layout), split = layout.tensor > 1 || layout.pipeline > 1;
  const bool mixed = spec.precision != Precision::fp32 && spec.optimizer.master_weights;
  refusals.add_if(split && mixed && !sharded,
                  fmt::format("trains with TP or PP in {} only beside DP or CP, but the layout is TP {} PP {} DP 1 CP "
                              "1",
                              enum_name(spec.precision), layout.tensor, layout.pipeline),
                  "choose a strategy with DP or CP above 1, or fp32");
  refusals.add_if(layout.data > 1 && layout.zero_stage == 1,
                  "shards gradients with the optimizer's state, so it does not support ZeRO-1",
                  "set zero_stage to 2 or 3");
  refusals.add_if(spec.model.num_key_value_heads % layout.tensor != 0,
                  fmt::format("gives every rank whole key-value heads, but TP {} does not divide the {} heads",
                              layout.tensor, spec.model.num_key_value_heads),
                  "choose a smaller TP");
  const int64_t parts = 2 * layout.tensor * layout.context;
  refusals.add_if(spec.sequence_length % parts != 0,
                  fmt::format("needs a sequence_length that is a multiple of 2·TP·CP = {}, but it is {}", parts,
                              spec.sequence_length),
                  "choose another sequence_length, TP or CP");
  refuse_megatron_settings(refusals, spec);
  const int64_t micro_batches = spec.gradient_accumulation_steps();
  refusals.add_if(layout.pipeline > 1 && micro_batches < layout.pipeline,
                  fmt::format("needs a micro-batch for each of the {} stages, but a rank has {} per step",
                              layout.pipeline, micro_batches),
                  "lower the micro_batch_size or PP, or raise the global_batch_size");
}

bool trains_in(Precision precision, Platform platform) {
  return precision == Precision::bf16 || precision == Precision::fp32 ||
         (precision == Precision::fp8 && platform != Platform::cpu);
}

// What PyTorch does not do on processors.
void add_processor_limits(Refusals& refusals, const LaunchRequest& request) {
  const TrainSpec& spec = request.spec;
  if (request.platform != Platform::cpu) return;
  refusals.add_if(spec.parallel.context > 1, "splits sequences on GPUs only", "set CP to 1");
  refusals.add_if(spec.parallel.tensor > 1 && titan_family(spec.model) == TitanFamily::qwen3,
                  "splits its qwen3 (norms on queries and keys, or heads of a width of their own) on GPUs only",
                  "set TP to 1");
  refusals.add_if(spec.precision == Precision::fp8, "trains in fp8 on GPUs only", "choose bf16 or fp32");
  refusals.add_if(spec.offload.value_or(Offload::none) != Offload::none, "offloads from GPUs only",
                  "leave offload out");
}

void add_format_limits(Refusals& refusals, const LaunchRequest& request) {
  const TrainSpec& spec = request.spec;
  const bool pure = !spec.optimizer.master_weights, fp8 = spec.precision == Precision::fp8;
  refusals.add_if(spec.precision == Precision::fp16 || spec.precision == Precision::tf32,
                  fmt::format("does not train in {}", enum_name(spec.precision)), "choose bf16, fp32 or fp8");
  refusals.add_if(pure != (spec.optimizer.moments == MomentFormat::bf16),
                  "keeps Adam's moments in the format of its weights: bf16 without master weights, else fp32",
                  "set both, moments: bf16 and master_weights: false, or neither");
  refusals.add_if(pure && spec.precision == Precision::fp32, "does not support bf16 weights with fp32 matrix products",
                  "choose bf16");
  const bool gathers = fp8 && request.settings.fp8_param.value_or(false);
  refusals.add_if(gathers && (spec.parallel.data == 1 || !request.settings.fp8_hybrid.value_or(true)),
                  "gathers weights in fp8 only with DP above 1 and one scale per tensor (fp8_hybrid: true)",
                  "leave out fp8_param, or change DP and fp8_hybrid");
  const bool offloads = spec.offload.value_or(Offload::none) != Offload::none;
  refusals.add_if(offloads && !shards_with_fsdp(spec.parallel),
                  "offloads what FSDP2 shards, but the layout has DP 1 and CP 1",
                  "choose a strategy with DP or CP above 1, or leave offload out");
}

void require_titan_can(const LaunchRequest& request) {
  Refusals refusals(Framework::tita);
  add_titan_model_limits(refusals, request);
  add_layout_limits(refusals, request.spec);
  add_format_limits(refusals, request);
  add_processor_limits(refusals, request);
  refusals.throw_if_any();
}

void add_titan_deviations(std::vector<Deviation>& list, const TrainSpec& spec) {
  const ParallelSpec& layout = spec.parallel;
  if (layout.data > 1 && layout.zero_stage == 0) list.push_back({"zero_stage", "0", "3"});
  if (layout.tensor > 1 && !layout.sequence_parallel) list.push_back({"sequence_parallel", "false", "true"});
  if (spec.offload == Offload::optimizer) list.push_back({"offload", "optimizer", "parameters"});
  if (!spec.optimizer.master_weights) list.push_back({"weight_rounding", "stochastic", "to nearest"});
  if (spec.recompute == Recompute::selective)
    list.push_back(
        {"recompute", "selective: repeats the attention core", "selective: keeps attention and every second product"});
  add_titan_expert_deviations(list, spec);
}

std::optional<Installation> find_tita(const Checkout& checkout) {
  return find_adapter_environment(Framework::tita, k_titan_package, checkout);
}

TrainProgram plan_tita(const LaunchRequest& request) {
  require_titan_can(request);
  TrainProgram program = run_adapter("train_tita.py", request);
  use_adapter_environment(Framework::tita, request, program);
  program.files.push_back({request.paths.folder + "/torchtitan.toml", write_titan_config(request)});
  add_titan_deviations(program.deviations, request.spec);
  return program;
}

}  // namespace

// PyTorch's torchtitan: its Trainer, which frameworks/train_tita.py gives the model, the data and the schedule, on the
// torchtitan.toml that we write. Further arguments are torchtitan's options and override that file.
FrameworkModule tita_module() {
  FrameworkModule module = {Framework::tita,
                            "torchtitan",
                            {Platform::nvd, Platform::amd, Platform::cpu},
                            find_tita,
                            plan_tita,
                            "run tprimat doctor --install tita",
                            "",
                            {Profiler::nsys, Profiler::rocprofv3, Profiler::torch}};
  module.sets_formats = module.offloads = module.takes_arguments = true;
  module.is_environment = true;
  module.further_steps = Profiler::torch;
  module.checked = {"torchtitan", {"0.2.2"}, "PyTorch 2.13.0"};
  module.trains_in = trains_in;
  return module;
}

}  // namespace tprimat::suite
