#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/schema.h"
#include "spec/train_spec.h"
#include "text/fields.h"

// The configuration as it is written, key by key, with nothing checked but the types. Never leaves this module.
namespace tprimat::raw {

using Text = std::optional<std::string>;
using Whole = std::optional<int64_t>;
using Number = std::optional<double>;
using Flag = std::optional<bool>;
using TextList = std::optional<std::vector<std::string>>;

// Named things in the order of the file.
template <class T, NameKind kind = NameKind::any>
struct Named {
  static constexpr NameKind name_kind = kind;
  std::vector<std::pair<std::string, T>> entries;

  const T* find(const std::string& name) const {
    for (const auto& [key, value] : entries)
      if (key == name) return &value;
    return nullptr;
  }
  T* find(const std::string& name) { return const_cast<T*>(std::as_const(*this).find(name)); }
};

struct ExperimentSection {
  Text name, description, version, methodology;
  Flag profiling, logging;
  TextList frameworks;
  static constexpr auto fields() {
    using E = ExperimentSection;
    return std::tuple{
        field("name", &E::name, "name of the experiment, for people and archives"),
        field("description", &E::description, "one sentence on what is compared"),
        field("version", &E::version, "version of this file, yours to choose"),
        field("methodology", &E::methodology, "default strategy: a name under parallelism, or single for one device"),
        field("profiling", &E::profiling, "record a profiler trace of each run"),
        field("logging", &E::logging, "keep the complete log of each run"),
        field("frameworks", &E::frameworks, "frameworks to run; empty means each platform's own")};
  }
};

struct Platform {
  Text gpu_model;
  Number memory_per_gpu_gb;
  Whole num_gpus;
  Text software_stack;
  std::optional<Framework> framework;
  static constexpr auto fields() {
    using P = Platform;
    return std::tuple{
        field("gpu_model", &P::gpu_model, "device: H100, MI300X, ...; auto on a CPU"),
        field("memory_per_gpu_gb", &P::memory_per_gpu_gb, "memory of one device in GB (1e9 bytes)"),
        field("num_gpus", &P::num_gpus, "devices that one training uses, over all nodes"),
        field("software_stack", &P::software_stack, "cuda, rocm or cpu; follows from the platform when absent"),
        field("framework", &P::framework, "default framework of the platform")};
  }
  static constexpr KeyAlias aliases[] = {
      {"device_model", "gpu_model"}, {"num_devices", "num_gpus"}, {"memory_per_device_gb", "memory_per_gpu_gb"}};
  static constexpr KeyRange ranges[] = {{"memory_per_gpu_gb", 0, 1e6, true}, {"num_gpus", 1, 1e6}};
};

struct Hardware {
  Named<Platform, NameKind::platform> platforms;
  static constexpr auto fields() {
    return std::tuple{field("platforms", &Hardware::platforms, "the machines compared: nvd, amd, cpu")};
  }
};

struct Model {
  Text name, full_name;
  Number num_parameters;
  Whole num_layers, hidden_size, ffn_hidden_size, num_attention_heads, num_key_value_heads, head_dim, vocab_size;
  Whole max_position_embeddings;
  Flag tied_embeddings, qkv_bias, linear_bias, qk_norm;
  std::optional<NormKind> norm;
  std::optional<MlpKind> mlp;
  std::optional<PositionKind> position;
  Number rope_theta, norm_eps;
  Whole sliding_window, num_experts, experts_per_token;
  Text dataset_path, tokenizer_path, nemo_recipe, primus_config;
  static constexpr auto fields() {
    using M = Model;
    return std::tuple{
        field("name", &M::name, "the model's usual name; the shape of a public model is looked up by it"),
        field("full_name", &M::full_name, "name for people"),
        field("num_parameters", &M::num_parameters, "published parameter count; checked against the shape"),
        field("num_layers", &M::num_layers, "Transformer blocks"),
        field("hidden_size", &M::hidden_size, "width of the residual stream"),
        field("ffn_hidden_size", &M::ffn_hidden_size, "inner width of the MLP"),
        field("num_attention_heads", &M::num_attention_heads, "query heads"),
        field("num_key_value_heads", &M::num_key_value_heads, "key and value heads (grouped-query attention)"),
        field("head_dim", &M::head_dim, "width of one head; hidden_size / num_attention_heads when absent"),
        field("vocab_size", &M::vocab_size, "tokens in the vocabulary, without padding"),
        field("max_position_embeddings", &M::max_position_embeddings, "longest sequence, in tokens"),
        field("tied_embeddings", &M::tied_embeddings, "the head shares the embedding's weights"),
        field("qkv_bias", &M::qkv_bias, "bias on the query, key and value products (Qwen 2.5)"),
        field("linear_bias", &M::linear_bias, "bias on every linear layer (GPT-2)"),
        field("qk_norm", &M::qk_norm, "RMSNorm per head on queries and keys (Qwen 3)"),
        field("norm", &M::norm, "kind of normalisation"),
        field("mlp", &M::mlp, "kind of MLP"),
        field("position", &M::position, "kind of position encoding"),
        field("rope_theta", &M::rope_theta, "base of the rotary frequencies"),
        field("norm_eps", &M::norm_eps, "epsilon inside the norm's square root"),
        field("sliding_window", &M::sliding_window, "keys each query sees, in tokens"),
        field("num_experts", &M::num_experts, "experts per layer"),
        field("experts_per_token", &M::experts_per_token, "experts each token is routed to"),
        field("dataset_path", &M::dataset_path, "prefix of a Megatron .bin/.idx pair; absent: synthetic tokens"),
        field("tokenizer_path", &M::tokenizer_path, "tokenizer: a folder or a hub name"),
        field("nemo_recipe", &M::nemo_recipe, "NeMo's recipe for the model"),
        field("primus_config", &M::primus_config, "Primus's configuration file for the model")};
  }
  static constexpr KeyAlias aliases[] = {{"num_query_groups", "num_key_value_heads"},
                                         {"tie_word_embeddings", "tied_embeddings"},
                                         {"max_sequence_length", "max_position_embeddings"}};
  static constexpr KeyRange ranges[] = {
      {"num_parameters", 1, 1e14},   {"num_layers", 1, 10000},        {"hidden_size", 1, 1e6},
      {"ffn_hidden_size", 1, 1e7},   {"num_attention_heads", 1, 1e5}, {"num_key_value_heads", 1, 1e5},
      {"head_dim", 1, 1e5},          {"vocab_size", 2, 1e8},          {"max_position_embeddings", 1, 1e9},
      {"rope_theta", 0, 1e12, true}, {"norm_eps", 0, 1, true},        {"sliding_window", 1, 1e9},
      {"num_experts", 1, 1e5},       {"experts_per_token", 1, 1e5}};
};

struct General {
  Whole seed;
  static constexpr auto fields() {
    return std::tuple{field("seed", &General::seed, "seed of the weights and of the data order")};
  }
  static constexpr KeyRange ranges[] = {{"seed", 0, 4294967295.0}};
};

struct Data {
  Whole micro_batch_size, global_batch_size, seq_length;
  static constexpr auto fields() {
    using D = Data;
    return std::tuple{
        field("micro_batch_size", &D::micro_batch_size, "MBS: sequences that one rank takes at once"),
        field("global_batch_size", &D::global_batch_size, "GBS: sequences of one optimizer step, over all ranks"),
        field("seq_length", &D::seq_length, "SL: tokens of one sequence")};
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
    return std::tuple{field("max_steps", &Duration::max_steps, "optimizer steps of one run")};
  }
  static constexpr KeyAlias aliases[] = {{"train_iters", "max_steps"}};
  static constexpr KeyRange ranges[] = {{"max_steps", 1, 1e9}};
};

struct Optimizer {
  Text type;
  Number learning_rate, min_learning_rate, beta1, beta2, epsilon, weight_decay, clip_grad_norm;
  std::optional<ScheduleKind> schedule;
  Whole warmup_steps;
  static constexpr auto fields() {
    using O = Optimizer;
    return std::tuple{
        field("type", &O::type, "adamw; adam means the same, with decoupled weight decay, as in Megatron-LM"),
        field("learning_rate", &O::learning_rate, "peak learning rate"),
        field("min_learning_rate", &O::min_learning_rate,
              "learning rate after the decay; a tenth of the peak when absent"),
        field("warmup_steps", &O::warmup_steps, "steps of linear warm-up of the learning rate"),
        field("schedule", &O::schedule, "shape of the learning rate after the warm-up"),
        field("weight_decay", &O::weight_decay, "decoupled decay of matrices; norms and biases have none"),
        field("beta1", &O::beta1, "decay of the first moment"),
        field("beta2", &O::beta2, "decay of the second moment"),
        field("epsilon", &O::epsilon, "added to the root of the second moment"),
        field("clip_grad_norm", &O::clip_grad_norm, "the global gradient norm is clipped to this; 0 means never")};
  }
  static constexpr KeyAlias aliases[] = {{"lr", "learning_rate"}, {"min_lr", "min_learning_rate"}, {"eps", "epsilon"}};
  static constexpr KeyRange ranges[] = {{"learning_rate", 0, 100, true}, {"min_learning_rate", 0, 100},
                                        {"warmup_steps", 0, 1e9},        {"weight_decay", 0, 100},
                                        {"beta1", 0, 0.999999},          {"beta2", 0, 0.9999999},
                                        {"epsilon", 0, 1, true},         {"clip_grad_norm", 0, 1e9}};
};

struct PrecisionSection {
  std::optional<Precision> fallback;
  Flag fp8_hybrid, fp8_param;
  static constexpr auto fields() {
    using P = PrecisionSection;
    return std::tuple{
        field("default", &P::fallback, "number format of the matrix products where a platform states no other"),
        field("fp8_hybrid", &P::fp8_hybrid, "with fp8: E4M3 forward, E5M2 for gradients"),
        field("fp8_param", &P::fp8_param, "with fp8: keep the weights in fp8 too")};
  }
};

struct Checkpointing {
  Flag enabled;
  Whole save_interval, keep_last_n;
  static constexpr auto fields() {
    using C = Checkpointing;
    return std::tuple{field("enabled", &C::enabled, "write checkpoints"),
                      field("save_interval", &C::save_interval, "steps between two checkpoints"),
                      field("keep_last_n", &C::keep_last_n, "checkpoints to keep")};
  }
  static constexpr KeyRange ranges[] = {{"save_interval", 1, 1e9}, {"keep_last_n", 1, 1e6}};
};

struct Training {
  General general;
  Data data;
  Duration duration;
  Optimizer optimizer;
  PrecisionSection precision;
  Checkpointing checkpointing;
  static constexpr auto fields() {
    using T = Training;
    return std::tuple{field("general", &T::general, "seed"),
                      field("data", &T::data, "batch and sequence"),
                      field("duration", &T::duration, "how long one run is"),
                      field("optimizer", &T::optimizer, "optimizer and learning-rate schedule"),
                      field("precision", &T::precision, "number formats"),
                      field("checkpointing", &T::checkpointing, "saving the weights")};
  }
};

struct Layout {
  Whole tensor, pipeline, virtual_pipeline, data, context, accumulation;
  Flag sequence_parallel;
  static constexpr auto fields() {
    using L = Layout;
    return std::tuple{
        field("tensor_model_parallel_size", &L::tensor, "TP: devices that share each matrix"),
        field("pipeline_model_parallel_size", &L::pipeline, "PP: devices that share the layers"),
        field("virtual_pipeline_model_parallel_size", &L::virtual_pipeline, "VP: pipeline stages per device"),
        field("data_parallel_size", &L::data, "DP: replicas; follows from the device count when absent"),
        field("context_parallel_size", &L::context, "CP: devices that share each sequence"),
        field("gradient_accumulation_steps", &L::accumulation, "GA: GBS / (MBS x DP); follows when absent"),
        field("sequence_parallel", &L::sequence_parallel, "SP: norms split over the TP group")};
  }
  static constexpr KeyAlias aliases[] = {{"TP", "tensor_model_parallel_size"},
                                         {"PP", "pipeline_model_parallel_size"},
                                         {"VP", "virtual_pipeline_model_parallel_size"},
                                         {"DP", "data_parallel_size"},
                                         {"CP", "context_parallel_size"},
                                         {"GA", "gradient_accumulation_steps"},
                                         {"SP", "sequence_parallel"}};
  static constexpr KeyRange ranges[] = {{"tensor_model_parallel_size", 1, 65536},
                                        {"pipeline_model_parallel_size", 1, 65536},
                                        {"virtual_pipeline_model_parallel_size", 1, 1e4},
                                        {"data_parallel_size", 1, 65536},
                                        {"context_parallel_size", 1, 65536},
                                        {"gradient_accumulation_steps", 1, 1e8}};
};

using LayoutsByPlatform = Named<Layout, NameKind::platform>;
using LayoutsByModel = Named<LayoutsByPlatform>;

struct Optimizations {
  std::optional<Precision> precision;
  Flag fp8_hybrid, fp8_param, activation_checkpointing, gradient_checkpointing;
  Text cuda_alloc_conf;
  static constexpr auto fields() {
    using O = Optimizations;
    return std::tuple{
        field("precision", &O::precision, "number format on this platform; training.precision.default when absent"),
        field("fp8_hybrid", &O::fp8_hybrid, "with fp8: E4M3 forward, E5M2 for gradients"),
        field("fp8_param", &O::fp8_param, "with fp8: keep the weights in fp8 too"),
        field("cuda_alloc_conf", &O::cuda_alloc_conf, "PyTorch's PYTORCH_CUDA_ALLOC_CONF"),
        field("activation_checkpointing", &O::activation_checkpointing, "recompute activations in the backward pass"),
        field("gradient_checkpointing", &O::gradient_checkpointing, "the same under its Hugging Face name")};
  }
};

struct Output {
  Text directory, filename_format, log_format;
  static constexpr auto fields() {
    using O = Output;
    return std::tuple{field("directory", &O::directory, "where results, logs and reports go"),
                      field("filename_format", &O::filename_format,
                            "name of a result file; {platform}, {framework}, {model} are filled in"),
                      field("log_format", &O::log_format, "name of a log file; the same placeholders")};
  }
};

struct Metrics {
  TextList performance, memory;
  static constexpr auto fields() {
    return std::tuple{field("performance", &Metrics::performance, "speed figures to show first"),
                      field("memory", &Metrics::memory, "memory figures to show first")};
  }
};

struct HardwareFigures {
  Number peak_fp8, peak_fp16, peak_bf16, peak_tf32, peak_fp32, tdp_watts;
  static constexpr auto fields() {
    using H = HardwareFigures;
    return std::tuple{field("peak_tflops_fp8", &H::peak_fp8, "dense FP8 peak of one device in FLOP/s (989e12)"),
                      field("peak_tflops_fp16", &H::peak_fp16, "dense FP16 peak in FLOP/s; BF16 too unless stated"),
                      field("peak_tflops_bf16", &H::peak_bf16, "dense BF16 peak in FLOP/s"),
                      field("peak_tflops_tf32", &H::peak_tf32, "dense TF32 peak in FLOP/s"),
                      field("peak_tflops_fp32", &H::peak_fp32, "FP32 peak in FLOP/s"),
                      field("tdp_watts", &H::tdp_watts, "thermal design power of one device in watts")};
  }
  static constexpr KeyRange ranges[] = {{"peak_tflops_fp8", 1e9, 1e18},  {"peak_tflops_fp16", 1e9, 1e18},
                                        {"peak_tflops_bf16", 1e9, 1e18}, {"peak_tflops_tf32", 1e9, 1e18},
                                        {"peak_tflops_fp32", 1e9, 1e18}, {"tdp_watts", 0, 1e5, true}};
};

struct EnhancedMetrics {
  Named<Number> cloud_costs;
  Named<HardwareFigures> hardware_specs;
  static constexpr auto fields() {
    using E = EnhancedMetrics;
    return std::tuple{field("cloud_costs", &E::cloud_costs, "USD per hour: <platform>_<device>_<n>gpu_per_hour: price"),
                      field("hardware_specs", &E::hardware_specs,
                            "figures that override the hardware catalogue, by <platform>_<device>")};
  }
};

struct Benchmarking {
  Whole runs;
  Text warmup;
  Output output;
  Metrics metrics;
  EnhancedMetrics enhanced_metrics;
  static constexpr auto fields() {
    using B = Benchmarking;
    return std::tuple{field("runs", &B::runs, "independent runs of each training"),
                      field("warmup", &B::warmup, "auto: detect the steps before steady state; or their number"),
                      field("output", &B::output, "files that a run writes"),
                      field("metrics", &B::metrics, "figures to show first"),
                      field("enhanced_metrics", &B::enhanced_metrics, "prices and hardware figures")};
  }
  static constexpr KeyRange ranges[] = {{"runs", 1, 10000}};
};

struct Path {
  Text installation, config_dir, run_script;
  static constexpr auto fields() {
    return std::tuple{field("installation", &Path::installation, "folder of the framework's checkout"),
                      field("config_dir", &Path::config_dir, "folder of its configurations, inside the installation"),
                      field("run_script", &Path::run_script, "its start script, inside the installation")};
  }
};

struct Config {
  ExperimentSection experiment;
  Hardware hardware;
  Named<Model> models;
  Training training;
  Named<LayoutsByModel> parallelism;
  Named<Optimizations, NameKind::platform> platform_optimizations;
  Benchmarking benchmarking;
  Named<Path, NameKind::framework> paths;
  static constexpr auto fields() {
    using C = Config;
    return std::tuple{field("experiment", &C::experiment, "what this is"),
                      field("hardware", &C::hardware, "what it runs on"),
                      field("models", &C::models, "what is trained: a name of your choice, then the shape"),
                      field("training", &C::training, "how it is trained; the same for every platform and framework"),
                      field("parallelism", &C::parallelism, "layouts: strategy, then model, then platform"),
                      field("platform_optimizations", &C::platform_optimizations, "what differs between the platforms"),
                      field("benchmarking", &C::benchmarking, "how it is measured and where the results go"),
                      field("paths", &C::paths, "where the frameworks are installed")};
  }
};

}  // namespace tprimat::raw
