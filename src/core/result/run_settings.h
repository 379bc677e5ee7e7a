#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spec/model_spec.h"
#include "spec/names.h"
#include "text/fields.h"

namespace tprimat {

// The part of a RunResult that says what was trained, on what, how.

// The device a run used; on `cpu` the processor. Keys as older tools read them.
struct DeviceInfo {
  std::string device_name;
  std::optional<int64_t> device_count;
  std::optional<double> total_memory_gb;  // of one device
  std::optional<int64_t> gpu_cores;
  std::optional<std::string> software_stack;  // cuda, rocm, cpu
  std::optional<std::string> software_version;
  std::optional<std::string> pytorch_version;
  static constexpr auto fields() {
    using D = DeviceInfo;
    return field_list(field("device_name", &D::device_name, "name as the driver gives it"),
                      field("device_count", &D::device_count, "devices of the run"),
                      field("total_memory_gb", &D::total_memory_gb, "memory of one device, GB"),
                      field("gpu_cores", &D::gpu_cores, "shader cores of one device"),
                      field("software_stack", &D::software_stack, "cuda, rocm or cpu"),
                      field("software_version", &D::software_version, "version of the stack"),
                      field("pytorch_version", &D::pytorch_version, "version of PyTorch where it ran"));
  }
};

struct TrainingConfig {
  std::optional<int64_t> max_steps, global_batch_size, micro_batch_size, sequence_length, num_gpus, tokens_per_step;
  std::optional<std::string> parallel_strategy;
  std::optional<double> learning_rate, min_learning_rate, weight_decay, clip_grad_norm;
  std::optional<int64_t> warmup_steps, seed;
  std::optional<std::string> optimizer, schedule, recompute;
  static constexpr auto fields() {
    using T = TrainingConfig;
    return field_list(field("max_steps", &T::max_steps, "steps asked for"),
                      field("global_batch_size", &T::global_batch_size, "sequences per step"),
                      field("micro_batch_size", &T::micro_batch_size, "sequences per forward pass and rank"),
                      field("sequence_length", &T::sequence_length, "tokens per sequence"),
                      field("num_gpus", &T::num_gpus, "devices of the run"),
                      field("tokens_per_step", &T::tokens_per_step,
                            "tokens of a step over all ranks, where batch and sequence length are not both known"),
                      field("parallel_strategy", &T::parallel_strategy, "name of the layout"),
                      field("learning_rate", &T::learning_rate, "peak learning rate asked for"),
                      field("min_learning_rate", &T::min_learning_rate, "final learning rate asked for"),
                      field("weight_decay", &T::weight_decay, "decoupled weight decay"),
                      field("clip_grad_norm", &T::clip_grad_norm, "gradient norm is clipped to this"),
                      field("warmup_steps", &T::warmup_steps, "steps of learning-rate warm-up"),
                      field("seed", &T::seed, "seed of weights and data"),
                      field("optimizer", &T::optimizer, "optimizer"),
                      field("schedule", &T::schedule, "learning-rate schedule"),
                      field("recompute", &T::recompute, "activations computed again: none, selective, full"));
  }
};

struct ParallelismConfig {
  std::optional<std::string> strategy_name;
  std::optional<int64_t> tensor_model_parallel_size, pipeline_model_parallel_size, data_parallel_size,
      context_parallel_size, gradient_accumulation_steps, virtual_pipeline_model_parallel_size, zero_stage;
  std::optional<bool> sequence_parallel, embedding_and_loss_as_layers;
  static constexpr auto fields() {
    using P = ParallelismConfig;
    return field_list(field("strategy_name", &P::strategy_name, "name of the layout"),
                      field("tensor_model_parallel_size", &P::tensor_model_parallel_size, "TP"),
                      field("pipeline_model_parallel_size", &P::pipeline_model_parallel_size, "PP"),
                      field("data_parallel_size", &P::data_parallel_size, "DP"),
                      field("context_parallel_size", &P::context_parallel_size, "CP"),
                      field("gradient_accumulation_steps", &P::gradient_accumulation_steps, "GA"),
                      field("virtual_pipeline_model_parallel_size", &P::virtual_pipeline_model_parallel_size,
                            "VP: pipeline stages of a rank"),
                      field("zero_stage", &P::zero_stage,
                            "ZeRO: the data-parallel ranks share 1 optimizer states, 2 gradients too, 3 weights too"),
                      field("embedding_and_loss_as_layers", &P::embedding_and_loss_as_layers,
                            "the embedding and the loss count as a layer each where the pipeline cuts the model"),
                      field("sequence_parallel", &P::sequence_parallel, "SP: norms split over the TP group"));
  }
};

struct ModelInfo {
  std::string name;
  std::optional<std::string> full_name;
  std::optional<int64_t> num_parameters;
  std::optional<int64_t> trainable_parameters = {};  // absent: all of them
  std::optional<ModelSpec> shape;
  static constexpr auto fields() {
    using M = ModelInfo;
    return field_list(field("name", &M::name, "key of the model"), field("full_name", &M::full_name, "name for people"),
                      field("num_parameters", &M::num_parameters, "exact parameter count"),
                      field("trainable_parameters", &M::trainable_parameters,
                            "parameters that the optimizer updates (adapters, or those not frozen); absent: all"),
                      field("shape", &M::shape, "shape of the model"));
  }
};

}  // namespace tprimat
