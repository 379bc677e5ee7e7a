#include "compare/printed_settings.h"

#include <algorithm>
#include <charconv>
#include <span>

namespace tprimat::results {
namespace {

// What it is, and what the frameworks call it: Megatron-LM, NeMo, torchtitan, Hugging Face, Primus.
struct PrintedSetting {
  const char* what;
  std::vector<std::string_view> names;
  bool is_count = false;  // "1" is one, not on
};

const std::vector<PrintedSetting>& data_settings() {
  static const std::vector<PrintedSetting> list = {
      {"packed sequences",
       {"packing", "packed_sequence", "pack_sequences", "use_packed_sequence", "dataset.packing",
        "data.packed_sequence", "model.data.packed_sequence", "model.data.train_ds.packed_sequence", "sft_packing"}},
      {"attention across documents", {"reset_attention_mask", "model.data.reset_attention_mask"}},
      {"attention dropout", {"attention_dropout", "model.attention_dropout"}},
      {"hidden dropout", {"hidden_dropout", "model.hidden_dropout"}},
      {"forced balance of experts",
       {"moe_router_force_load_balancing", "training.debug_moe_force_load_balance", "debug.moe_force_load_balance"}},
      {"capacity of experts", {"moe_expert_capacity_factor"}, true},
      {"layers that predict further tokens", {"mtp_num_layers"}, true},
  };
  return list;
}

const PrintedSetting k_synthetic_data = {"synthetic data", {"mock_data", "data.mock_data"}};

const std::vector<PrintedSetting>& tuning_settings() {
  static const std::vector<PrintedSetting> list = {
      {"attention", {"attention_backend", "attn_implementation"}},
      {"flash attention", {"use_flash_attn", "use_flash_attention"}},
      {"compiled", {"compile.enable", "training.compile", "torch_compile"}},
      {"overlapped gradient reduction", {"overlap_grad_reduce", "model.optim.overlap_grad_sync", "overlap_comm"}},
      {"overlapped parameter gathering", {"overlap_param_gather"}},
      {"overlapped tensor parallelism", {"tp_comm_overlap", "model.ub_tp_comm_overlap"}},
      {"optimizer on the host", {"optimizer_cpu_offload", "cpu_offload", "training.enable_cpu_offload"}},
      {"weights gathered again", {"parallelism.fsdp_reshard_after_forward"}},
      {"CUDA graphs", {"enable_cuda_graph", "external_cuda_graph", "cuda_graph_impl"}},
  };
  return list;
}

const PrintedSetting k_printed_recipe = {"FP8 recipe", {"fp8_recipe"}};

// Results of earlier versions hold these as printed only.
const PrintedSetting k_printed_zero = {
    "ZeRO stage", {"zero_stage", "zero_optimization_stage", "zero_optimization.stage"}, true};
const PrintedSetting k_printed_recompute = {
    "recomputation",
    {"recompute_granularity", "activation_checkpoint.mode", "checkpoint_activations", "gradient_checkpointing"}};

std::optional<double> number_of(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// "True", "true" and "1" are one word, and so is what is not there.
std::string plain_value(std::string value, bool is_count) {
  for (char& c : value) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  if (value == "true" || (value == "1" && !is_count)) return "on";
  if (value == "false" || number_of(value) == 0.0 || value == "none" || value == "null") return "off";
  return value;
}

std::optional<std::string> find_value(const RunResult& run, const PrintedSetting& setting) {
  if (!run.effective_config) return std::nullopt;
  for (const std::string_view name : setting.names) {
    const auto found = run.effective_config->find(std::string(name));
    if (found != run.effective_config->end() && !found->second.empty())
      return plain_value(found->second, setting.is_count);
  }
  return std::nullopt;
}

Evidences compare_printed(const RunResult& reference, const RunResult& subject,
                          std::span<const PrintedSetting> settings) {
  Evidences evidence;
  for (const PrintedSetting& setting : settings) {
    const auto x = find_value(reference, setting), y = find_value(subject, setting);
    const auto a = x ? number_of(*x) : std::nullopt, b = y ? number_of(*y) : std::nullopt;
    if (!a || !b || !is_equal(*a, *b)) add(evidence, setting.what, x, y);
  }
  return evidence;
}

}  // namespace

Evidences find_other_data_settings(const RunResult& reference, const RunResult& subject) {
  return compare_printed(reference, subject, data_settings());
}

Evidences find_synthetic_data(const RunResult& reference, const RunResult& subject) {
  return compare_printed(reference, subject, {&k_synthetic_data, 1});
}

Evidences find_other_tuning(const RunResult& reference, const RunResult& subject) {
  Evidences evidence;
  const ParallelismConfig &x = reference.parallelism_config, &y = subject.parallelism_config;
  add(evidence, "MBS", reference.training_config.micro_batch_size, subject.training_config.micro_batch_size);
  add(evidence, "ZeRO stage", x.zero_stage, y.zero_stage);
  add(evidence, "virtual pipeline", x.virtual_pipeline_model_parallel_size, y.virtual_pipeline_model_parallel_size);
  add(evidence, "embedding and loss as layers", x.embedding_and_loss_as_layers, y.embedding_and_loss_as_layers);
  add(evidence, "sequence parallelism", x.sequence_parallel, y.sequence_parallel);
  std::vector<PrintedSetting> printed = tuning_settings();
  if (reference.precision == Precision::fp8 && subject.precision == Precision::fp8) printed.push_back(k_printed_recipe);
  if (!x.zero_stage || !y.zero_stage) printed.push_back(k_printed_zero);
  if (!reference.training_config.recompute || !subject.training_config.recompute)
    printed.push_back(k_printed_recompute);
  for (Evidence& each : compare_printed(reference, subject, printed)) evidence.push_back(std::move(each));
  return evidence;
}

}  // namespace tprimat::results
