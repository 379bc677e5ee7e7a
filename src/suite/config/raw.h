#pragma once

#include "config/experiment.h"
#include "config/raw_framework.h"
#include "config/raw_launch.h"
#include "config/raw_model.h"
#include "config/raw_training.h"
#include "config/raw_types.h"
#include "spec/train_spec.h"
#include "text/fields.h"

// The configuration as written, key by key; only the types are checked. Private to this module.
namespace tprimat::suite::raw {

struct ExperimentSection {
  Text name, description, version, methodology;
  Flag profiling, logging;
  Whole profile_steps;
  TextList frameworks;
  std::optional<Adapt> adapt;
  static constexpr auto fields() {
    using E = ExperimentSection;
    return field_list(
        field("name", &E::name, "name of the experiment, for people and archives"),
        field("description", &E::description, "one sentence on the comparison"),
        field("version", &E::version, "version of this file, yours to choose"),
        field("methodology", &E::methodology, "default strategy: a name under parallelism, or single for one device"),
        field("profiling", &E::profiling, "train everything once more under a profiler, after the measured runs"),
        field("profile_steps", &E::profile_steps,
              "steps to train under the framework's profiler after the measured ones of each run; 0: none"),
        field("logging", &E::logging, "keep the complete log of each run"),
        field("frameworks", &E::frameworks,
              "frameworks to run, or all: every one that runs on the platform; empty means each platform's own"),
        field("adapt", &E::adapt,
              "what a framework does with a setting it does not support: strict refuses, nearest takes the closest"));
  }
  static constexpr KeyRange ranges[] = {{"profile_steps", 0, 1000}};
};

struct Platform {
  Text gpu_model;
  Number memory_per_gpu_gb;
  Whole num_gpus;
  Text software_stack;
  std::optional<Framework> framework;
  static constexpr auto fields() {
    using P = Platform;
    return field_list(
        field("gpu_model", &P::gpu_model, "device: H100, MI300X, ...; auto on a CPU"),
        field("memory_per_gpu_gb", &P::memory_per_gpu_gb, "memory of one device in GB (1e9 bytes)"),
        field("num_gpus", &P::num_gpus,
              "devices per training, over all nodes; on a CPU ranks, of which `tprimat run` takes one per memory "
              "domain where it can"),
        field("software_stack", &P::software_stack, "cuda, rocm or cpu; derived from the platform when absent"),
        field("framework", &P::framework, "default framework of the platform"));
  }
  static constexpr KeyAlias aliases[] = {
      {"device_model", "gpu_model"}, {"num_devices", "num_gpus"}, {"memory_per_device_gb", "memory_per_gpu_gb"}};
  static constexpr KeyRange ranges[] = {{"memory_per_gpu_gb", 0, 1e6, true}, {"num_gpus", 1, 1e6}};
};

struct Hardware {
  std::optional<PeakOrigin> peak_source;
  Named<Platform, NameKind::platform> platforms;
  static constexpr auto fields() {
    return field_list(field("peak_source", &Hardware::peak_source,
                            "peaks for MFU: the catalogue's where it has the device, or mine: those of hardware_specs"),
                      field("platforms", &Hardware::platforms, "the machines compared: nvd, amd, cpu"));
  }
};

struct Layout {
  Whole tensor, pipeline, virtual_pipeline, data, context, expert, expert_tensor, accumulation;
  Flag sequence_parallel, ends_as_layers;
  Text pipeline_layout;
  Whole zero_stage;
  static constexpr auto fields() {
    using L = Layout;
    return field_list(
        field("tensor_model_parallel_size", &L::tensor, "TP: devices that share each matrix"),
        field("pipeline_model_parallel_size", &L::pipeline, "PP: devices that share the layers"),
        field("virtual_pipeline_model_parallel_size", &L::virtual_pipeline, "VP: pipeline stages per device"),
        field("data_parallel_size", &L::data, "DP: replicas; derived from the device count when absent"),
        field("context_parallel_size", &L::context, "CP: devices that share each sequence"),
        field("expert_model_parallel_size", &L::expert,
              "EP: devices that share the routed experts of a layer, among TP x CP x DP; 1 when absent"),
        field("expert_tensor_parallel_size", &L::expert_tensor,
              "ETP: devices that share each routed expert, among TP x CP x DP; 1 when absent"),
        field("gradient_accumulation_steps", &L::accumulation, "GA: GBS / (MBS x DP); computed when absent"),
        field("sequence_parallel", &L::sequence_parallel, "SP: norms split over the TP group"),
        field("embedding_and_loss_as_layers", &L::ends_as_layers,
              "count the embedding and the loss as one layer each when PP and VP split the model"),
        field("pipeline_layout", &L::pipeline_layout,
              "what each of the PP x VP chunks holds, as Megatron-LM's --pipeline-model-parallel-layout takes it; "
              "equally many layers when absent"),
        field("zero_stage", &L::zero_stage,
              "ZeRO: the data-parallel ranks shard 1 optimizer states, 2 also gradients, 3 also weights; 0: nothing"));
  }
  static constexpr KeyAlias aliases[] = {{"TP", "tensor_model_parallel_size"},
                                         {"PP", "pipeline_model_parallel_size"},
                                         {"VP", "virtual_pipeline_model_parallel_size"},
                                         {"DP", "data_parallel_size"},
                                         {"CP", "context_parallel_size"},
                                         {"EP", "expert_model_parallel_size"},
                                         {"ETP", "expert_tensor_parallel_size"},
                                         {"GA", "gradient_accumulation_steps"},
                                         {"SP", "sequence_parallel"},
                                         {"ZeRO", "zero_stage"}};
  static constexpr KeyRange ranges[] = {{"tensor_model_parallel_size", 1, 65536},
                                        {"pipeline_model_parallel_size", 1, 65536},
                                        {"virtual_pipeline_model_parallel_size", 1, 1e4},
                                        {"data_parallel_size", 1, 65536},
                                        {"context_parallel_size", 1, 65536},
                                        {"expert_model_parallel_size", 1, 65536},
                                        {"expert_tensor_parallel_size", 1, 65536},
                                        {"gradient_accumulation_steps", 1, 1e8},
                                        {"zero_stage", 0, 3}};
};

using LayoutsByPlatform = Named<Layout, NameKind::platform>;
using LayoutsByModel = Named<LayoutsByPlatform>;

struct Optimizations {
  std::optional<Precision> precision;
  Flag fp8_hybrid, fp8_param, activation_checkpointing, gradient_checkpointing;
  std::optional<Recompute> recompute;
  TextList recompute_modules;
  Flag flash_attention;
  Text visible_devices, cuda_alloc_conf, nccl_debug;
  Whole cuda_device_max_connections;
  Flag hsa_no_scratch_reclaim, hsa_enable_sdma, recommended_variables;
  Named<Text> environment;
  static constexpr auto fields() {
    using O = Optimizations;
    return field_list(
        field("precision", &O::precision, "number format on this platform; training.precision.default when absent"),
        field("fp8_hybrid", &O::fp8_hybrid, "with fp8: E4M3 forward, E5M2 for gradients"),
        field("fp8_param", &O::fp8_param, "with fp8: keep the weights in fp8 too"),
        field("recompute", &O::recompute, "activations recomputed in the backward pass; none when absent"),
        field(
            "recompute_modules", &O::recompute_modules,
            "with recompute: selective, the parts of a layer that mega, nemo and prim repeat: core_attn (when absent), "
            "layernorm, moe_act, mla_up_proj, mlp, moe, shared_experts"),
        field("activation_checkpointing", &O::activation_checkpointing,
              "true means recompute: full, unless recompute is set"),
        field("gradient_checkpointing", &O::gradient_checkpointing,
              "the Hugging Face name of activation_checkpointing"),
        field("flash_attention", &O::flash_attention, "fused attention; the framework's own choice when absent"),
        field("visible_devices", &O::visible_devices, "CUDA_VISIBLE_DEVICES, on AMD HIP_VISIBLE_DEVICES: \"0,1,2,3\""),
        field("cuda_alloc_conf", &O::cuda_alloc_conf,
              "PyTorch's PYTORCH_CUDA_ALLOC_CONF; on AMD PYTORCH_HIP_ALLOC_CONF, expandable_segments:True when absent"),
        field("nccl_debug", &O::nccl_debug, "NCCL_DEBUG, also read by RCCL: VERSION, WARN, INFO or TRACE"),
        field("cuda_device_max_connections", &O::cuda_device_max_connections,
              "CUDA_DEVICE_MAX_CONNECTIONS; 1 for Megatron's trainers when absent"),
        field("hsa_no_scratch_reclaim", &O::hsa_no_scratch_reclaim, "HSA_NO_SCRATCH_RECLAIM, on AMD; true when absent"),
        field("hsa_enable_sdma", &O::hsa_enable_sdma, "HSA_ENABLE_SDMA, on AMD; true when absent"),
        field(
            "recommended_variables", &O::recommended_variables,
            "on AMD, false sets no variable for an absent cuda_alloc_conf, hsa_no_scratch_reclaim or hsa_enable_sdma"),
        field("environment", &O::environment, "additional environment variables for every rank, by name"));
  }
  static constexpr KeyRange ranges[] = {{"cuda_device_max_connections", 1, 32}};
};

struct Output {
  Text directory, filename_format, log_format;
  static constexpr auto fields() {
    using O = Output;
    return field_list(field("directory", &O::directory, "folder for results, logs and reports"),
                      field("filename_format", &O::filename_format,
                            "name of a result file; {platform}, {software_stack}, {framework}, {model} are filled in"),
                      field("log_format", &O::log_format, "name of a log file; the same placeholders"));
  }
};

struct Metrics {
  TextList performance, memory;
  static constexpr auto fields() {
    return field_list(field("performance", &Metrics::performance, "speed figures to show first"),
                      field("memory", &Metrics::memory, "memory figures to show first"));
  }
};

struct HardwareFigures {
  Number peak_fp8, peak_fp16, peak_bf16, peak_tf32, peak_fp32, tdp_watts;
  static constexpr auto fields() {
    using H = HardwareFigures;
    return field_list(
        field("peak_tflops_fp8", &H::peak_fp8, "dense FP8 peak of one device in FLOP/s (1979e12)"),
        field("peak_tflops_fp16", &H::peak_fp16, "dense FP16 peak in FLOP/s; also the BF16 peak unless stated"),
        field("peak_tflops_bf16", &H::peak_bf16, "dense BF16 peak in FLOP/s"),
        field("peak_tflops_tf32", &H::peak_tf32, "dense TF32 peak in FLOP/s"),
        field("peak_tflops_fp32", &H::peak_fp32, "FP32 peak in FLOP/s"),
        field("tdp_watts", &H::tdp_watts, "thermal design power of one device in watts"));
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
    return field_list(
        field("cloud_costs", &E::cloud_costs, "USD per hour: <platform>_<device>_<n>gpu_per_hour: price"),
        field("hardware_specs", &E::hardware_specs, "peaks and power of devices, by <platform>_<device>"));
  }
};

struct Benchmarking {
  Whole runs;
  Text warmup;
  Number cool_down_seconds;
  Text planner_parameters;
  Output output;
  Metrics metrics;
  EnhancedMetrics enhanced_metrics;
  static constexpr auto fields() {
    using B = Benchmarking;
    return field_list(
        field("runs", &B::runs, "independent runs of each training"),
        field("warmup", &B::warmup, "steps excluded as warm-up: auto to detect steady state, or their number"),
        field("cool_down_seconds", &B::cool_down_seconds, "pause between two runs, in seconds; none when absent"),
        field("planner_parameters", &B::planner_parameters,
              "parameter file written by tprimat plan --calibrate, used for predictions"),
        field("output", &B::output, "files that a run writes"), field("metrics", &B::metrics, "figures to show first"),
        field("enhanced_metrics", &B::enhanced_metrics, "prices and hardware figures"));
  }
  static constexpr KeyRange ranges[] = {{"runs", 1, 10000}, {"cool_down_seconds", 0, 86400}};
};

struct Path {
  Text installation, config_dir, run_script;
  static constexpr auto fields() {
    return field_list(field("installation", &Path::installation, "folder of the framework's checkout"),
                      field("config_dir", &Path::config_dir, "folder of its configurations, inside the installation"),
                      field("run_script", &Path::run_script, "its start script, inside the installation"));
  }
};

struct Config {
  ExperimentSection experiment;
  Hardware hardware;
  Named<Model> models;
  Training training;
  Named<LayoutsByModel> parallelism;
  Named<FrameworkSection, NameKind::framework_id> frameworks;
  Named<Optimizations, NameKind::platform> platform_optimizations;
  Launch launch;
  Benchmarking benchmarking;
  Named<Path, NameKind::framework> paths;
  static constexpr auto fields() {
    using C = Config;
    return field_list(field("experiment", &C::experiment, "what this is"),
                      field("hardware", &C::hardware, "what it runs on"),
                      field("models", &C::models, "what is trained: a name of your choice, then the shape"),
                      field("training", &C::training, "how it is trained; the same for every platform and framework"),
                      field("parallelism", &C::parallelism, "layouts: strategy, then model, then platform"),
                      field("frameworks", &C::frameworks, "what differs between the frameworks, by their short names"),
                      field("platform_optimizations", &C::platform_optimizations, "what differs between the platforms"),
                      field("launch", &C::launch, "what starts the ranks, and where"),
                      field("benchmarking", &C::benchmarking, "how it is measured and where the results go"),
                      field("paths", &C::paths, "where the frameworks are installed"));
  }
};

}  // namespace tprimat::suite::raw
