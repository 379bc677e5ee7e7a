#pragma once

#include "config/raw_types.h"
#include "spec/train_spec.h"
#include "text/fields.h"

// training, as written.
namespace tprimat::suite {
namespace raw {

struct General {
  Whole seed;
  Flag deterministic;
  static constexpr auto fields() {
    using G = General;
    return field_list(
        field("seed", &G::seed, "seed of weight initialisation and data order"),
        field("deterministic", &G::deterministic,
              "bitwise reproducible with the same seed, layout and threads; when absent, true on a CPU, false on "
              "GPUs"));
  }
  static constexpr KeyRange ranges[] = {{"seed", 0, 4294967295.0}};
};

struct Data {
  Whole micro_batch_size, global_batch_size, seq_length;
  Text split, dataset_path, tokenizer_path;
  static constexpr auto fields() {
    using D = Data;
    return field_list(
        field("micro_batch_size", &D::micro_batch_size, "MBS: sequences per micro-batch and rank"),
        field("global_batch_size", &D::global_batch_size, "GBS: sequences per optimizer step, over all ranks"),
        field("seq_length", &D::seq_length, "SL: tokens per sequence"),
        field("split", &D::split,
              "weights of training, validation and test in a .bin/.idx pair: 949,50,1; all training when absent"),
        field("dataset_path", &D::dataset_path, "dataset_path of the models that state none"),
        field("tokenizer_path", &D::tokenizer_path, "tokenizer_path of the models that state none"));
  }
  static constexpr KeyAlias aliases[] = {{"sequence_length", "seq_length"},
                                         {"SL", "seq_length"},
                                         {"MBS", "micro_batch_size"},
                                         {"GBS", "global_batch_size"}};
  static constexpr KeyRange ranges[] = {
      {"micro_batch_size", 1, 1e6}, {"global_batch_size", 1, 1e8}, {"seq_length", 1, 1e8}};
};

struct Duration {
  Whole max_steps;
  static constexpr auto fields() {
    return field_list(field("max_steps", &Duration::max_steps, "optimizer steps per run"));
  }
  static constexpr KeyAlias aliases[] = {{"train_iters", "max_steps"}};
  static constexpr KeyRange ranges[] = {{"max_steps", 1, 1e9}};
};

struct Optimizer {
  Text type;
  Number learning_rate, min_learning_rate, beta1, beta2, epsilon, weight_decay, clip_grad_norm;
  std::optional<ScheduleKind> schedule;
  Whole warmup_steps;
  Number warmup_fraction;
  std::optional<MomentFormat> moments;
  Flag master_weights;
  static constexpr auto fields() {
    using O = Optimizer;
    return field_list(
        field("type", &O::type, "adamw; adam means the same, with decoupled weight decay, as in Megatron-LM"),
        field("learning_rate", &O::learning_rate, "peak learning rate"),
        field("min_learning_rate", &O::min_learning_rate,
              "learning rate after the decay; a tenth of the peak when absent"),
        field("warmup_steps", &O::warmup_steps, "steps of linear learning-rate warm-up"),
        field("warmup_fraction", &O::warmup_fraction, "warm-up as a fraction of max_steps; state this or warmup_steps"),
        field("schedule", &O::schedule, "learning-rate schedule after the warm-up"),
        field("weight_decay", &O::weight_decay, "decoupled weight decay of matrices; norms and biases have none"),
        field("beta1", &O::beta1, "decay of the first moment"), field("beta2", &O::beta2, "decay of the second moment"),
        field("epsilon", &O::epsilon, "added to the square root of the second moment"),
        field("clip_grad_norm", &O::clip_grad_norm, "maximum global gradient norm; 0 disables clipping"),
        field("moments", &O::moments, "number format of Adam's moments; bf16: for native, tran and tita"),
        field("master_weights", &O::master_weights,
              "fp32 copy of 16-bit weights; false: none, for native (rounds stochastically), tran and tita"));
  }
  static constexpr KeyAlias aliases[] = {{"lr", "learning_rate"}, {"min_lr", "min_learning_rate"}, {"eps", "epsilon"}};
  static constexpr KeyRange ranges[] = {
      {"learning_rate", 0, 100, true}, {"min_learning_rate", 0, 100}, {"warmup_steps", 0, 1e9},
      {"warmup_fraction", 0, 1},       {"weight_decay", 0, 100},      {"beta1", 0, 0.999999},
      {"beta2", 0, 0.9999999},         {"epsilon", 0, 1, true},       {"clip_grad_norm", 0, 1e9}};
};

struct LossScale {
  Number initial;
  Whole window;
  Number minimum;
  static constexpr auto fields() {
    using L = LossScale;
    return field_list(field("initial", &L::initial, "with fp16: loss scale of the first step"),
                      field("window", &L::window, "with fp16: steps without an overflow after which the scale doubles"),
                      field("minimum", &L::minimum, "with fp16: the scale never falls below this"));
  }
  static constexpr KeyRange ranges[] = {{"initial", 0, 1e18, true}, {"window", 1, 1e9}, {"minimum", 0, 1e18, true}};
};

struct PrecisionSection {
  std::optional<Precision> fallback;
  Flag fp8_hybrid, fp8_param;
  LossScale loss_scale;
  static constexpr auto fields() {
    using P = PrecisionSection;
    return field_list(
        field("default", &P::fallback, "number format of matrix products, unless a platform states another"),
        field("fp8_hybrid", &P::fp8_hybrid, "with fp8: E4M3 forward, E5M2 for gradients"),
        field("fp8_param", &P::fp8_param, "with fp8: keep the weights in fp8 too"),
        field("loss_scale", &P::loss_scale, "dynamic scaling of the loss, with fp16"));
  }
};

struct Checkpointing {
  Flag enabled;
  Whole save_interval, keep_last_n;
  static constexpr auto fields() {
    using C = Checkpointing;
    return field_list(field("enabled", &C::enabled, "write checkpoints"),
                      field("save_interval", &C::save_interval, "steps between two checkpoints"),
                      field("keep_last_n", &C::keep_last_n, "checkpoints to keep"));
  }
  static constexpr KeyRange ranges[] = {{"save_interval", 1, 1e9}, {"keep_last_n", 1, 1e6}};
};

struct Evaluation {
  Whole interval, batches;
  static constexpr auto fields() {
    using E = Evaluation;
    return field_list(
        field("interval", &E::interval, "steps between two evaluations on the validation split; 0: never"),
        field("batches", &E::batches, "global batches per evaluation"));
  }
  static constexpr KeyRange ranges[] = {{"interval", 0, 1e9}, {"batches", 1, 1e9}};
};

// An update with NaN would corrupt every weight, so recording it is not enough.
enum class OnNotFinite { stop, skip };

struct Anomalies {
  std::optional<OnNotFinite> not_finite;
  std::optional<OnAnomaly> spike;
  Number spike_factor;
  static constexpr auto fields() {
    using A = Anomalies;
    return field_list(
        field("not_finite", &A::not_finite, "on a NaN or infinite loss or gradient: stop, or skip the update"),
        field("spike", &A::spike, "on a loss spike: stop, skip the update, or only record it"),
        field("spike_factor", &A::spike_factor,
              "a loss above this multiple of its running mean is a spike; 0 disables detection"));
  }
  static constexpr KeyRange ranges[] = {{"spike_factor", 0, 1e6}};
};

struct Training {
  General general;
  Data data;
  Duration duration;
  Optimizer optimizer;
  PrecisionSection precision;
  Evaluation evaluation;
  Anomalies anomalies;
  Checkpointing checkpointing;
  std::optional<Routing> routing;
  std::optional<Dispatcher> dispatcher;
  static constexpr auto fields() {
    using T = Training;
    return field_list(field("general", &T::general, "seed and reproducibility"),
                      field("data", &T::data, "batch and sequence"),
                      field("duration", &T::duration, "how long one run is"),
                      field("optimizer", &T::optimizer, "optimizer and learning-rate schedule"),
                      field("precision", &T::precision, "number formats"),
                      field("evaluation", &T::evaluation, "loss on the validation split"),
                      field("anomalies", &T::anomalies, "what happens when a step goes wrong"),
                      field("checkpointing", &T::checkpointing, "saving the weights"),
                      field("routing", &T::routing,
                            "mixture of experts: learned (when absent): the router chooses; balanced: forced balance "
                            "gives each expert the same number of tokens, as in benchmarks"),
                      field("dispatcher", &T::dispatcher,
                            "mixture of experts: how tokens reach their experts' ranks; alltoall when absent"));
  }
};

}  // namespace raw
}  // namespace tprimat::suite
