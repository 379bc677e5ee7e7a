#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/model_spec.h"
#include "spec/names.h"
#include "text/fields.h"
#include "text/json.h"

namespace tprimat {

enum class ScheduleKind { constant, linear, cosine };

enum class MomentFormat { fp32, bf16 };

struct OptimizerSpec {
  std::string type = "adamw";  // decoupled decay; "adam" in a config means the same, as in Megatron
  double learning_rate = 3e-4;
  double min_learning_rate = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double clip_grad_norm = 1.0;  // 0: no clipping
  ScheduleKind schedule = ScheduleKind::cosine;
  int64_t warmup_steps = 0;
  MomentFormat moments = MomentFormat::fp32;
  bool master_weights = true;  // false: weights exist in the 16-bit format only and are rounded stochastically

  bool is_compact() const { return moments != MomentFormat::fp32 || !master_weights; }

  static constexpr auto fields() {
    using O = OptimizerSpec;
    return field_list(
        field("type", &O::type, "optimizer"), field("learning_rate", &O::learning_rate, "peak learning rate"),
        field("min_learning_rate", &O::min_learning_rate, "learning rate at the end of the decay"),
        field("beta1", &O::beta1, "decay of the first moment"), field("beta2", &O::beta2, "decay of the second moment"),
        field("epsilon", &O::epsilon, "added to the root of the second moment"),
        field("weight_decay", &O::weight_decay, "decoupled decay of matrices; norms and biases have none"),
        field("clip_grad_norm", &O::clip_grad_norm, "global gradient norm is clipped to this; 0 means never"),
        field("schedule", &O::schedule, "shape of the learning rate after the warm-up"),
        field("warmup_steps", &O::warmup_steps, "steps of linear warm-up"),
        field("moments", &O::moments, "number format in which Adam's moments are kept"),
        field("master_weights", &O::master_weights,
              "weights in 16 bits have a copy in fp32; without one they are rounded stochastically"));
  }
  bool operator==(const OptimizerSpec&) const = default;
};

// "adamw", "adamw, moments in bf16, no master weights"
std::string describe_optimizer(const OptimizerSpec& optimizer);

struct ParallelSpec {
  std::string strategy = "single";
  int64_t tensor = 1;
  int64_t pipeline = 1;
  int64_t virtual_pipeline = 1;
  int64_t data = 1;
  int64_t context = 1;
  bool sequence_parallel = false;             // norms and dropout split over the tensor-parallel group
  bool ends_as_layers = false;                // embedding and loss count as layers where the stages are cut
  std::optional<int64_t> expert = {};         // EP: ranks that share a layer's routed experts; it divides TP x CP x DP
  std::optional<int64_t> expert_tensor = {};  // ETP: ranks that split one routed expert
  std::optional<std::string> pipeline_layout = {};  // what each chunk holds (spec/pipeline_layout.h); absent: by rule
  int64_t zero_stage = 0;  // state that the data-parallel ranks shard: 1 optimizer, 2 also gradients, 3 also weights
  int64_t expert_ranks() const { return expert.value_or(1); }
  int64_t expert_tensor_ranks() const { return expert_tensor.value_or(1); }
  int64_t ranks() const { return tensor * pipeline * data * context; }
  // What PP x VP divides: layers, and embedding and loss where they count as such.
  int64_t pipeline_units(int64_t num_layers) const { return num_layers + (ends_as_layers ? 2 : 0); }

  static constexpr auto fields() {
    using P = ParallelSpec;
    return field_list(
        field("strategy_name", &P::strategy, "name of the layout"),
        field("tensor_model_parallel_size", &P::tensor, "TP"),
        field("pipeline_model_parallel_size", &P::pipeline, "PP"),
        field("virtual_pipeline_model_parallel_size", &P::virtual_pipeline, "pipeline stages per rank"),
        field("data_parallel_size", &P::data, "DP"), field("context_parallel_size", &P::context, "CP"),
        field("expert_model_parallel_size", &P::expert, "EP: ranks that share a layer's routed experts"),
        field("expert_tensor_parallel_size", &P::expert_tensor, "ETP: ranks that split one routed expert"),
        field("pipeline_layout", &P::pipeline_layout,
              "layers of each chunk of the pipeline, in Megatron-LM's notation; absent: equally many"),
        field("sequence_parallel", &P::sequence_parallel, "SP: norms split over the TP group"),
        field("embedding_and_loss_as_layers", &P::ends_as_layers,
              "the embedding and the loss count as one layer each when the pipeline splits the model"),
        field("zero_stage", &P::zero_stage,
              "ZeRO: the data-parallel ranks shard 1 optimizer states, 2 also gradients, 3 also weights"));
  }
  bool operator==(const ParallelSpec&) const = default;
};

// "synthetic", or the prefix of a Megatron .bin/.idx pair.
struct DataSpec {
  std::string dataset = "synthetic";
  std::string split = "100,0,0";  // as Megatron's --split
  static constexpr auto fields() {
    return field_list(field("dataset", &DataSpec::dataset, "\"synthetic\" or the prefix of a Megatron .bin/.idx pair"),
                      field("split", &DataSpec::split, "weights of training, validation and test in a .bin/.idx pair"));
  }
  bool is_synthetic() const { return dataset == "synthetic"; }
  bool operator==(const DataSpec&) const = default;
};

enum class Recompute { none, selective, full };

// Parts of a layer that selective recomputation of Megatron-Core repeats (its `recompute_modules`).
enum class RecomputedModule {
  attention_core,
  norms,
  expert_activation,
  latent_projections,
  dense_mlp,
  experts,
  shared
};
constexpr auto enum_table(RecomputedModule) {
  return std::to_array<std::pair<RecomputedModule, std::string_view>>(
      {{RecomputedModule::attention_core, "core_attn"},
       {RecomputedModule::norms, "layernorm"},
       {RecomputedModule::expert_activation, "moe_act"},
       {RecomputedModule::latent_projections, "mla_up_proj"},
       {RecomputedModule::dense_mlp, "mlp"},
       {RecomputedModule::experts, "moe"},
       {RecomputedModule::shared, "shared_experts"}});
}

// What the host's memory keeps instead of the GPU's: the optimizer's state, or that and the weights (ZeRO-Offload,
// arXiv 2101.06840).
enum class Offload { none, optimizer, parameters };

// Dynamic scaling of the loss for fp16 (Micikevicius et al., arXiv 1710.03740; names as in Megatron-LM): an overflow
// halves the scale and skips the update, `window` steps without one double it.
struct LossScaleSpec {
  double initial = 4096.0;
  int64_t window = 1000;
  double minimum = 1.0;
  static constexpr auto fields() {
    using L = LossScaleSpec;
    return field_list(field("initial", &L::initial, "loss scale of the first step"),
                      field("window", &L::window, "steps without an overflow after which the scale doubles"),
                      field("minimum", &L::minimum, "the scale never falls below this"));
  }
  bool operator==(const LossScaleSpec&) const = default;
};

enum class OnAnomaly { stop, skip, record };

// The reaction to a faulty step.
struct AnomalySpec {
  OnAnomaly not_finite = OnAnomaly::stop;  // loss or gradient is NaN or infinite; skip: the update is left out
  OnAnomaly spike = OnAnomaly::record;     // the loss is above spike_factor times its running mean
  double spike_factor = 0.0;               // 0: spikes are not detected
  static constexpr auto fields() {
    using A = AnomalySpec;
    return field_list(field("not_finite", &A::not_finite, "when a loss or gradient is NaN or infinite"),
                      field("spike", &A::spike, "when the loss jumps"),
                      field("spike_factor", &A::spike_factor, "a loss above this times its running mean is a spike"));
  }
  bool operator==(const AnomalySpec&) const = default;
};

struct EvaluationSpec {
  int64_t interval = 0;  // steps between two evaluations; 0: never
  int64_t batches = 10;  // global batches of one evaluation
  static constexpr auto fields() {
    using E = EvaluationSpec;
    return field_list(field("interval", &E::interval, "steps between two evaluations; 0 for none"),
                      field("batches", &E::batches, "global batches of one evaluation"));
  }
  bool operator==(const EvaluationSpec&) const = default;
};

struct CheckpointSpec {
  std::string directory;        // empty: nothing is saved
  int64_t save_interval = 0;    // steps between two checkpoints; 0: at the end only
  int64_t keep_last_n = 2;      // older ones are removed
  bool resume = true;           // go on from the newest sound checkpoint in the directory, if there is one
  std::string initial_weights;  // folder of Hugging Face config.json + safetensors to start from; empty: random
  std::optional<std::string> load = {};   // folder of the checkpoints of an earlier training, which this one continues
  std::optional<int64_t> load_step = {};  // the step of the one to load; unstated: the newest sound one
  int64_t first_step() const { return load_step.value_or(0) + 1; }
  static constexpr auto fields() {
    using C = CheckpointSpec;
    return field_list(
        field("directory", &C::directory, "folder of the checkpoints; empty: nothing is saved"),
        field("save_interval", &C::save_interval, "steps between two checkpoints; 0: at the end only"),
        field("keep_last_n", &C::keep_last_n, "checkpoints to keep"),
        field("resume", &C::resume, "go on from the newest sound checkpoint"),
        field("initial_weights", &C::initial_weights,
              "Hugging Face folder (config.json, safetensors) to start from; empty: random weights"),
        field("load", &C::load, "folder of checkpoints of an earlier training, which this one continues"),
        field("load_step", &C::load_step, "step of the checkpoint to load; unstated: the newest sound one"));
  }
  bool operator==(const CheckpointSpec&) const = default;
};

// The complete specification of one training. The suite hands it to every framework, and the native trainer reads it,
// as JSON.
struct TrainSpec {
  ModelSpec model;
  DataSpec data;
  OptimizerSpec optimizer;
  ParallelSpec parallel;
  Precision precision = Precision::bf16;
  int64_t sequence_length = 0;
  int64_t micro_batch_size = 1;
  int64_t global_batch_size = 1;
  int64_t steps = 0;
  int64_t seed = 42;
  int64_t threads = 0;  // CPU threads; 0: all that this process may use
  Recompute recompute = Recompute::none;
  std::optional<std::vector<RecomputedModule>> recompute_modules = {};  // of selective; unstated: the attention core
  std::optional<Offload> offload;                                       // unstated: none
  std::optional<Routing> routing = {};                                  // of a mixture of experts; unstated: learned
  std::optional<Dispatcher> dispatcher = {};                            // of a mixture of experts; unstated: all-to-all
  LossScaleSpec loss_scale;                                             // fp16 only
  AnomalySpec anomalies;
  EvaluationSpec evaluation;
  CheckpointSpec checkpoint;
  // Same seed, layout and threads: same bits. Unstated: true on a CPU, where it costs nothing, and false on a GPU,
  // where sums in a fixed order cost time and memory and other frameworks do not compute them.
  std::optional<bool> deterministic;
  bool is_deterministic(bool on_gpu) const { return deterministic.value_or(!on_gpu); }

  int64_t gradient_accumulation_steps() const { return global_batch_size / (micro_batch_size * parallel.data); }
  int64_t tokens_per_step() const { return global_batch_size * sequence_length; }

  static constexpr auto fields() {
    using T = TrainSpec;
    return field_list(
        field("model", &T::model, "shape of the model"), field("data", &T::data, "where tokens come from"),
        field("optimizer", &T::optimizer, "optimizer and learning-rate schedule"),
        field("parallel", &T::parallel, "layout over ranks"),
        field("precision", &T::precision, "number format of the matrix products"),
        field("sequence_length", &T::sequence_length, "SL, tokens"),
        field("micro_batch_size", &T::micro_batch_size, "MBS, sequences"),
        field("global_batch_size", &T::global_batch_size, "GBS, sequences per step"),
        field("steps", &T::steps, "optimizer updates"), field("seed", &T::seed, "seed of weights and data order"),
        field("threads", &T::threads, "CPU threads; 0 for all"),
        field("recompute", &T::recompute, "activations that the backward pass computes again"),
        field("recompute_modules", &T::recompute_modules,
              "parts of a layer that selective recomputation repeats; unstated: the attention core"),
        field("offload", &T::offload, "what the host's memory keeps instead of the GPU's"),
        field("routing", &T::routing,
              "choice of the experts: learned by the router, or balanced (forced balance); unstated: learned"),
        field("dispatcher", &T::dispatcher, "how tokens reach their experts' ranks; unstated: alltoall"),
        field("loss_scale", &T::loss_scale, "dynamic loss scaling of fp16"),
        field("anomalies", &T::anomalies, "what happens when a step goes wrong"),
        field("evaluation", &T::evaluation, "loss on the validation split"),
        field("checkpoint", &T::checkpoint, "saving and resuming"),
        field("deterministic", &T::deterministic,
              "same seed, layout and threads give the same bits; unstated: true on a CPU, false on GPUs"));
  }
  bool operator==(const TrainSpec&) const = default;
};

// The rules that the numbers break together (GBS = MBS·DP·GA, SL within the model ...); empty when sound.
std::vector<Problem> check_train_spec(const TrainSpec& spec, const std::string& where);

// Learning rate of step s = 1..total_steps, N = total_steps, W = warmup_steps, with the formulas of Megatron-LM's
// OptimizerParamScheduler (init_lr 0, one scheduler step per update, lr_decay_iters = N):
//   s <= W    peak · s / W
//   s > W     constant  peak
//             linear    min + (peak − min) · (1 − r)                 r = (s − W) / (N − W)
//             cosine    min + (peak − min) · (1 + cos(π·r)) / 2
// So the last step runs at min, and no step runs at 0 during warm-up. These are the rates that Megatron-LM's log shows
// for iteration s; its optimizer itself lags by one update (iteration s applies the rate of s − 1, the first 0). Beyond
// N the rate stays at min (constant: at peak).
double learning_rate_at(const OptimizerSpec& optimizer, int64_t step, int64_t total_steps);

Json train_spec_to_json(const TrainSpec& spec);

// Version 0.1 wrote a mixture of experts as `num_experts` and `experts_per_token`, where ffn_hidden_size was the width
// of an expert. Whether the JSON of a shape has them; and the same shape with `experts` instead, which stays as it is
// where the shape has it already.
bool has_flat_experts(const Json& model);
Json with_experts(Json model);

TrainSpec train_spec_from_json(const Json& json, const std::string& where);  // throws Error
// One problem for each unknown key: a misspelt one would silently keep its default.
std::vector<Problem> find_unknown_train_spec_keys(const Json& json, const std::string& where);

// Position of a rank in a layout. Order as in Megatron-LM ("tp-cp-ep-dp-pp"): tensor-parallel ranks are neighbours,
// then context, then data, then pipeline:  rank = tp + TP·(cp + CP·(dp + DP·pp)).
struct RankPlace {
  int tensor = 0, context = 0, data = 0, pipeline = 0;
};

}  // namespace tprimat
