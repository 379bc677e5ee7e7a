#pragma once

#include <functional>
#include <vector>

#include "launch/launch_plan.h"

// One setting of a launch changed at a time.
namespace tprimat::suite {

inline ModelSpec base_model() {
  return {.name = "base",
          .full_name = "Base",
          .num_layers = 8,
          .hidden_size = 512,
          .ffn_hidden_size = 1536,
          .num_attention_heads = 8,
          .num_key_value_heads = 4,
          .head_dim = 64,
          .vocab_size = 32000,
          .max_position_embeddings = 4096,
          .rope_theta = 500000.0,
          .rope_scaling = std::nullopt,
          .sliding_window = std::nullopt,
          .experts = std::nullopt};
}

inline Experts base_experts() {
  Experts experts;
  experts.count = 8, experts.per_token = 2;
  experts.ffn_hidden_size = 512;
  return experts;
}

inline LaunchRequest base_request(Platform platform) {
  LaunchRequest request;
  request.platform = platform;
  TrainSpec& spec = request.spec;
  spec.model = base_model();
  spec.data.dataset = "/data/tokens";
  spec.parallel.data = 4;
  spec.parallel.zero_stage = 0;
  spec.precision = Precision::bf16;
  spec.sequence_length = 2048;
  spec.micro_batch_size = 2;
  spec.global_batch_size = 32;
  spec.steps = 100;
  spec.optimizer.warmup_steps = 10;
  request.model_notes = {"", "llama31_8b.pretrain_recipe", ""};
  request.checkout = {"/opt/checkout", "", ""};
  request.paths = {"/out/runs/x", "/out/x.log", "/out/x.json", "/here"};
  request.own_program = "/usr/bin/tprimat";
  return request;
}

struct Change {
  const char* key;
  std::function<void(LaunchRequest&)> apply;
};

template <class Apply>
Change on_spec(const char* key, Apply apply) {
  return {key, [apply](LaunchRequest& request) { apply(request.spec); }};
}

inline std::vector<Change> optimizer_changes() {
  return {on_spec("learning_rate", [](TrainSpec& s) { s.optimizer.learning_rate = 1.25e-4; }),
          on_spec("min_learning_rate", [](TrainSpec& s) { s.optimizer.min_learning_rate = 1.5e-5; }),
          on_spec("schedule", [](TrainSpec& s) { s.optimizer.schedule = ScheduleKind::linear; }),
          on_spec("warmup_steps", [](TrainSpec& s) { s.optimizer.warmup_steps = 17; }),
          on_spec("beta1", [](TrainSpec& s) { s.optimizer.beta1 = 0.85; }),
          on_spec("beta2", [](TrainSpec& s) { s.optimizer.beta2 = 0.97; }),
          on_spec("epsilon", [](TrainSpec& s) { s.optimizer.epsilon = 1e-7; }),
          on_spec("weight_decay", [](TrainSpec& s) { s.optimizer.weight_decay = 0.03; }),
          on_spec("clip_grad_norm", [](TrainSpec& s) { s.optimizer.clip_grad_norm = 0.7; }),
          on_spec("moments", [](TrainSpec& s) { s.optimizer.moments = MomentFormat::bf16; }),
          on_spec("master_weights", [](TrainSpec& s) { s.optimizer.master_weights = false; })};
}

inline std::vector<Change> training_changes() {
  return {on_spec("seed", [](TrainSpec& s) { s.seed = 7; }),
          on_spec("micro_batch_size", [](TrainSpec& s) { s.micro_batch_size = 4; }),
          on_spec("global_batch_size", [](TrainSpec& s) { s.global_batch_size = 64; }),
          on_spec("sequence_length", [](TrainSpec& s) { s.sequence_length = 1024; }),
          on_spec("steps", [](TrainSpec& s) { s.steps = 101; }),
          on_spec("dataset", [](TrainSpec& s) { s.data.dataset = "/data/others"; }),
          on_spec("synthetic", [](TrainSpec& s) { s.data.dataset = "synthetic"; }),
          on_spec("split", [](TrainSpec& s) { s.data.split = "90,5,5"; }),
          on_spec("precision", [](TrainSpec& s) { s.precision = Precision::fp32; }),
          on_spec("fp16", [](TrainSpec& s) { s.precision = Precision::fp16; }),
          on_spec("fp8", [](TrainSpec& s) { s.precision = Precision::fp8; }),
          on_spec("recompute", [](TrainSpec& s) { s.recompute = Recompute::full; }),
          on_spec("selective", [](TrainSpec& s) { s.recompute = Recompute::selective; }),
          on_spec("evaluation",
                  [](TrainSpec& s) {
                    s.evaluation = {5, 3};
                  }),
          on_spec("initial_weights", [](TrainSpec& s) { s.checkpoint.initial_weights = "/weights"; }),
          on_spec("load", [](TrainSpec& s) { s.checkpoint.load = "/checkpoints", s.checkpoint.load_step = 10; }),
          on_spec("checkpoints", [](TrainSpec& s) { s.checkpoint.directory = "checkpoints"; })};
}

inline std::vector<Change> layout_changes() {
  return {on_spec("tensor", [](TrainSpec& s) { s.parallel.tensor = 2; }),
          on_spec("pipeline", [](TrainSpec& s) { s.parallel.pipeline = 2; }),
          on_spec("data", [](TrainSpec& s) { s.parallel.data = 8; }),
          on_spec("context", [](TrainSpec& s) { s.parallel.context = 2; }),
          on_spec("zero_stage 1", [](TrainSpec& s) { s.parallel.zero_stage = 1; }),
          on_spec("zero_stage 3", [](TrainSpec& s) { s.parallel.zero_stage = 3; })};
}

inline std::vector<Change> model_changes() {
  return {on_spec("num_layers", [](TrainSpec& s) { s.model.num_layers = 12; }),
          on_spec("hidden_size", [](TrainSpec& s) { s.model.hidden_size = 1024; }),
          on_spec("ffn_hidden_size", [](TrainSpec& s) { s.model.ffn_hidden_size = 2048; }),
          on_spec("num_attention_heads", [](TrainSpec& s) { s.model.num_attention_heads = 16; }),
          on_spec("num_key_value_heads", [](TrainSpec& s) { s.model.num_key_value_heads = 2; }),
          on_spec("head_dim", [](TrainSpec& s) { s.model.head_dim = 32; }),
          on_spec("vocab_size", [](TrainSpec& s) { s.model.vocab_size = 50000; }),
          on_spec("max_position_embeddings", [](TrainSpec& s) { s.model.max_position_embeddings = 8192; }),
          on_spec("tied_embeddings", [](TrainSpec& s) { s.model.tied_embeddings = true; }),
          on_spec("qkv_bias", [](TrainSpec& s) { s.model.qkv_bias = true; }),
          on_spec("linear_bias", [](TrainSpec& s) { s.model.linear_bias = true; }),
          on_spec("qk_norm", [](TrainSpec& s) { s.model.qk_norm = true; }),
          on_spec("rope_theta", [](TrainSpec& s) { s.model.rope_theta = 10000.0; }),
          on_spec("rope_scaling", [](TrainSpec& s) { s.model.rope_scaling = RopeScaling{}; }),
          on_spec("norm_eps", [](TrainSpec& s) { s.model.norm_eps = 1e-6; }),
          on_spec("sliding_window", [](TrainSpec& s) { s.model.sliding_window = 256; }),
          on_spec("experts", [](TrainSpec& s) { s.model.experts = base_experts(); }),
          on_spec("gpt", [](TrainSpec& s) {
            s.model.position = PositionKind::learned, s.model.norm = NormKind::layer;
            s.model.mlp = MlpKind::gelu, s.model.linear_bias = true;
            s.model.num_key_value_heads = s.model.num_attention_heads;
          })};
}

// Of a model with experts.
inline std::vector<Change> expert_changes() {
  const auto on_experts = [](const char* key, void (*apply)(Experts&)) {
    return on_spec(key, [apply](TrainSpec& s) { apply(*s.model.experts); });
  };
  return {
      on_experts("count", [](Experts& e) { e.count = 16; }),
      on_experts("per_token", [](Experts& e) { e.per_token = 4; }),
      on_experts("expert width", [](Experts& e) { e.ffn_hidden_size = 768; }),
      on_experts("shared experts", [](Experts& e) { e.shared_ffn_hidden_size = 512; }),
      on_experts("shared gate", [](Experts& e) { e.shared_ffn_hidden_size = 512, e.shared_gate = true; }),
      on_experts("first_dense_layers", [](Experts& e) { e.first_dense_layers = 2; }),
      on_experts("layer_interval", [](Experts& e) { e.layer_interval = 2; }),
      on_experts("latent_size", [](Experts& e) { e.latent_size = 256; }),
      on_experts("router_score", [](Experts& e) { e.router_score = RouterScore::sigmoid; }),
      on_experts("normalize_weights", [](Experts& e) { e.normalize_weights = false; }),
      on_experts("weight_scale", [](Experts& e) { e.weight_scale = 2.5; }),
      on_experts("groups", [](Experts& e) { e.groups = 4, e.groups_per_token = 2; }),
      on_experts("aux_loss", [](Experts& e) { e.balancing = LoadBalancing::aux_loss, e.aux_loss_coefficient = 0.01; }),
      on_experts("sequence_aux_loss",
                 [](Experts& e) { e.balancing = LoadBalancing::sequence_aux_loss, e.aux_loss_coefficient = 0.01; }),
      on_experts("bias", [](Experts& e) { e.router_score = RouterScore::sigmoid, e.balancing = LoadBalancing::bias; }),
      on_experts("z_loss", [](Experts& e) { e.z_loss_coefficient = 0.001; }),
      on_experts("capacity_factor", [](Experts& e) { e.capacity_factor = 1.25; }),
      on_spec("routing", [](TrainSpec& s) { s.routing = Routing::balanced; }),
      on_spec("EP", [](TrainSpec& s) { s.parallel.expert = 2; }),
      on_spec("ETP", [](TrainSpec& s) { s.parallel.expert_tensor = 2; }),
      on_spec("prediction_layers", [](TrainSpec& s) { s.model.prediction_layers = 1; }),
      on_spec("latent_attention",
              [](TrainSpec& s) {
                s.model.latent_attention = LatentAttention{256, 128, 32, 64};
              }),
      on_spec("sinks", [](TrainSpec& s) { s.model.attention_sinks = true; })};
}

// Beside a base where they have an effect.
inline std::vector<Change> dependent_changes() {
  return {on_spec("virtual_pipeline", [](TrainSpec& s) { s.parallel.virtual_pipeline = 2; }),
          on_spec("ends_as_layers", [](TrainSpec& s) { s.parallel.ends_as_layers = true; }),
          on_spec("pipeline_layout", [](TrainSpec& s) { s.parallel.pipeline_layout = "Et*5|t*3L"; }),
          on_spec("sequence_parallel", [](TrainSpec& s) { s.parallel.sequence_parallel = true; }),
          on_spec("rope factor", [](TrainSpec& s) { s.model.rope_scaling->factor = 32.0; }),
          on_spec("loss_scale", [](TrainSpec& s) { s.loss_scale.initial = 65536.0; }),
          on_spec("loss_scale window", [](TrainSpec& s) { s.loss_scale.window = 500; })};
}

inline std::vector<Change> platform_changes() {
  return {{"fp8_hybrid", [](LaunchRequest& r) { r.settings.fp8_hybrid = false; }},
          {"fp8_param", [](LaunchRequest& r) { r.settings.fp8_param = true; }},
          {"flash_attention", [](LaunchRequest& r) { r.settings.flash_attention = false; }},
          {"visible_devices", [](LaunchRequest& r) { r.settings.visible_devices = "4,5,6,7"; }},
          {"cuda_alloc_conf", [](LaunchRequest& r) { r.settings.cuda_alloc_conf = "expandable_segments:True"; }},
          {"nccl_debug", [](LaunchRequest& r) { r.settings.nccl_debug = "TRACE"; }},
          {"cuda_device_max_connections", [](LaunchRequest& r) { r.settings.cuda_device_max_connections = 8; }},
          {"environment", [](LaunchRequest& r) { r.settings.environment["NCCL_ALGO"] = "Ring"; }}};
}

}  // namespace tprimat::suite
