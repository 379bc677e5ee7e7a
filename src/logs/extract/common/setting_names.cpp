#include "extract/common/setting_names.h"

#include <fmt/format.h>

#include <array>
#include <span>

#include "extract/common/expert_settings.h"
#include "extract/common/log_words.h"
#include "extract/common/nested_settings.h"
#include "extract/scan_text.h"
#include "result/printed_settings.h"

namespace tprimat::logs {
namespace {

using Settings = std::map<std::string, std::string>;
using Facts = LoggedFacts;

// A fact and the frameworks' names for it, the most reliable first: Megatron-LM (NeMo adds "model."), GPT-NeoX,
// DeepSpeed, Hugging Face, torchtitan, NeMo's trainer; llm.c's table and MLPerf's log have names of their own.
struct WholeFact {
  std::optional<int64_t> Facts::*fact;
  int64_t least;
  std::vector<std::string_view> names;
};
struct RealFact {
  std::optional<double> Facts::*fact;
  std::vector<std::string_view> names;
};
struct TextFact {
  std::optional<std::string> Facts::*fact;
  std::vector<std::string_view> names;
};

const std::array<WholeFact, 14> k_whole_facts = {{
    {&Facts::tensor_parallel,
     1,
     {"tensor_model_parallel_size", "model_parallel_size", "parallelism.tensor_parallel_degree",
      "tensor_parallel_size"}},
    {&Facts::pipeline_parallel,
     1,
     {"pipeline_model_parallel_size", "pipe_parallel_size", "parallelism.pipeline_parallel_degree",
      "pipeline_parallel_size"}},
    {&Facts::context_parallel,
     1,
     {"context_parallel_size", "parallelism.context_parallel_degree", "context_parallel_degree"}},
    {&Facts::data_parallel, 1, {"data_parallel_size", "parallelism.data_parallel_shard_degree"}},
    {&Facts::virtual_pipeline, 1, {"virtual_pipeline_model_parallel_size"}},
    {&Facts::zero_stage, 0, {"zero_stage", "zero_optimization_stage", "zero_optimization.stage"}},
    {&Facts::gpu_count, 1, {"world_size", "num_gpus", "global_num_gpus"}},
    {&Facts::micro_batch_size,
     1,
     {"micro_batch_size", "train_micro_batch_size_per_gpu", "per_device_train_batch_size", "training.local_batch_size",
      "micro batch size B"}},
    {&Facts::global_batch_size,
     1,
     {"global_batch_size", "train_batch_size", "train_global_batch_size", "training.global_batch_size"}},
    {&Facts::accumulation_steps, 1, {"gradient_accumulation_steps", "gas"}},
    {&Facts::sequence_length,
     1,
     {"seq_length", "encoder_seq_length", "sequence_length", "max_seq_len", "max_seq_length", "training.seq_len",
      "seq_len", "block_size"}},
    {&Facts::max_steps,
     1,
     {"train_iters", "max_steps", "training.steps", "max_train_steps", "num_train_steps", "trainer.max_steps"}},
    {&Facts::warmup_steps,
     0,
     {"opt_learning_rate_warmup_steps", "lr_warmup_iters", "warmup_steps", "lr_scheduler.warmup_steps",
      "num_warmup_steps", "warmup_iter", "optim.sched.warmup_steps", "warmup iterations"}},
    {&Facts::seed, 0, {"seed", "random_seed", "training.seed"}},
}};

const std::array<RealFact, 4> k_real_facts = {{
    {&Facts::learning_rate,
     {"opt_base_learning_rate", "lr", "learning_rate", "optimizer.lr", "optimizer.params.lr", "optim.lr",
      "learning rate (LR)"}},
    {&Facts::min_learning_rate, {"opt_end_learning_rate", "min_lr", "min_learning_rate", "optim.sched.min_lr"}},
    {&Facts::weight_decay,
     {"opt_weight_decay", "opt_adamw_weight_decay", "weight_decay", "optimizer.weight_decay",
      "optimizer.params.weight_decay", "optim.weight_decay", "weight decay"}},
    {&Facts::clip_grad_norm,
     {"opt_gradient_clip_norm", "clip_grad", "gradient_clipping", "max_grad_norm", "training.max_norm",
      "trainer.gradient_clip_val"}},
}};

const std::array<TextFact, 4> k_text_facts = {{
    {&Facts::optimizer,
     {"opt_name", "optimizer", "optimizer_type", "optimizer_name", "optim", "optimizer.name", "optimizer.type",
      "optim.name"}},
    {&Facts::schedule,
     {"opt_learning_rate_decay_schedule", "lr_decay_style", "schedule", "lr_scheduler_type", "scheduler_name",
      "lr_scheduler.decay_type", "optim.sched.name", "LR scheduler"}},
    {&Facts::dataset,
     {"data_path", "train_data_path", "train_data_paths", "dataset", "dataset_name", "training.dataset",
      "train data pattern"}},
    {&Facts::model, {"model_name_or_path", "actor_model_name_or_path", "pretrained_model_name_or_path"}},
}};

// Megatron-LM prints those of experts for dense models, too.
const std::array<WholeFact, 2> k_expert_facts = {{
    {&Facts::expert_parallel,
     1,
     {"expert_model_parallel_size", "moe_expert_parallel_size", "parallelism.expert_parallel_degree",
      "expert_parallel_size"}},
    {&Facts::expert_tensor_parallel, 1, {"expert_tensor_parallel_size", "parallelism.expert_tensor_parallel_degree"}},
}};

// Nothing if the setting is absent or null.
const std::string* find_setting(const Settings& settings, std::string_view name) {
  for (const char* prefix : {"", "model."}) {
    const auto found = settings.find(prefix + std::string(name));
    if (found == settings.end()) continue;
    const std::string& value = found->second;
    if (!value.empty() && value != "None" && value != "null" && value != "[]" && value != "{}") return &found->second;
  }
  return nullptr;
}

// The number that the whole value is; nothing for "1e-5 and more".
Figure read_number(std::string_view text) {
  const Figure number = take_number(text);
  while (text.starts_with(".") || text.starts_with("0")) text.remove_prefix(1);  // "1." and "0."
  return trim(text).empty() ? number : Figure();
}

std::optional<int64_t> read_whole(const std::string& text, int64_t least) {
  const Figure number = read_number(text);
  const auto whole = number.finite() ? parse_whole(text) : std::nullopt;
  return whole && *whole >= least ? whole : std::nullopt;
}

std::optional<int64_t> whole_setting(const Settings& settings, std::string_view name, int64_t least) {
  const std::string* text = find_setting(settings, name);
  return text != nullptr ? read_whole(*text, least) : std::nullopt;
}

bool is_on(const Settings& settings, std::string_view name) {
  const std::string* value = find_setting(settings, name);
  return value != nullptr && (*value == "True" || *value == "true" || *value == "1");
}

// A warm-up of 0 steps means none only if none is given in samples or as a share.
bool has_other_warmup(const Settings& settings) {
  for (const std::string_view name : {"lr_warmup_fraction", "lr_warmup_samples", "warmup_ratio", "warmup"})
    if (const std::string* value = find_setting(settings, name);
        value != nullptr && read_number(*value).value_or(1) != 0)
      return true;
  return false;
}

void apply_whole(std::span<const WholeFact> rows, const Settings& settings, Facts& facts) {
  for (const WholeFact& row : rows)
    for (const std::string_view name : row.names) {
      if (facts.*row.fact) break;
      const auto value = whole_setting(settings, name, row.least);
      const bool no_warmup = row.fact == &Facts::warmup_steps && value == 0 && has_other_warmup(settings);
      if (value && !no_warmup) facts.*row.fact = value;
    }
}

void apply_reals(const Settings& settings, Facts& facts) {
  for (const RealFact& row : k_real_facts)
    for (const std::string_view name : row.names) {
      if (facts.*row.fact) break;
      const std::string* text = find_setting(settings, name);
      const Figure value = text != nullptr ? read_number(*text) : Figure();
      if (value.finite() && *value >= 0 && *value < 1e6) facts.*row.fact = *value;
    }
}

// "SchedulerType.LINEAR" -> "linear", "['/data/a']" -> "/data/a", "'adamw'" -> "adamw"
std::string plain_text(std::string_view text) {
  text = without_quotes(text);
  for (const std::string_view type : {"SchedulerType.", "OptimizerNames."})
    if (text.starts_with(type)) return lower_case(std::string(text.substr(type.size())));
  if (text.starts_with("['") && text.ends_with("']") && text.size() > 4 && !contains(text, ","))
    return std::string(text.substr(2, text.size() - 4));
  return std::string(text);
}

void apply_texts(const Settings& settings, Facts& facts) {
  for (const TextFact& row : k_text_facts)
    for (const std::string_view name : row.names) {
      if (facts.*row.fact) break;
      const std::string* text = find_setting(settings, name);
      if (text != nullptr && text->size() <= 300 && text->front() != '{') facts.*row.fact = plain_text(*text);
    }
}

// torchtitan's model has a family and a size: "llama3 8B".
void apply_model(const Settings& settings, Facts& facts) {
  const std::string *family = find_setting(settings, "model.name"), *flavour = find_setting(settings, "model.flavor");
  if (!facts.model && family != nullptr && flavour != nullptr) facts.model = quote_text(*family + " " + *flavour, 100);
}

std::optional<Precision> read_precision(const Settings& settings) {
  for (const std::string_view name : {"fp8", "fp8_format"})
    if (const std::string* value = find_setting(settings, name);
        value != nullptr && (*value == "hybrid" || *value == "e4m3" || *value == "E4M3" || is_on(settings, name)))
      return Precision::fp8;
  for (const std::string_view name : {"fp8_hybrid", "fp8_e4m3"})  // Megatron-DeepSpeed
    if (is_on(settings, name)) return Precision::fp8;
  if (const std::string* converters = find_setting(settings, "model.converters"))
    if (contains(*converters, "float8") || contains(*converters, "fp8")) return Precision::fp8;
  for (const auto& [precision, names] :
       {std::pair{Precision::bf16,
                  std::array<std::string_view, 4>{"bf16", "bfloat16_enabled", "bf16.enabled", "bfloat16.enabled"}},
        std::pair{Precision::fp16, std::array<std::string_view, 4>{"fp16", "fp16_enabled", "fp16.enabled", "float16"}}})
    for (const std::string_view name : names)
      if (is_on(settings, name)) return precision;
  for (const std::string_view name :
       {"params_dtype", "precision", "training.mixed_precision_param", "trainer.precision"}) {
    const std::string* value = find_setting(settings, name);
    if (value == nullptr) continue;
    std::string_view word = *value;
    if (word.starts_with("torch.")) word.remove_prefix(6);
    word = word.substr(0, word.find('-'));  // "bf16-mixed"
    if (const auto precision = parse_enum<Precision>(word)) return precision;
  }
  return std::nullopt;
}

// By the first name that is present, "None" included, which Megatron and NeMo print without recomputation.
std::optional<std::string> read_recompute(const Settings& settings) {
  const auto value_of = [&](const std::string& name) {
    const auto found = settings.find(name);
    return found == settings.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
  if (value_of("recompute_method") == "block" && value_of("recompute_num_layers") == "0") return "none";
  for (const std::string name :
       {"recompute_granularity", "model.activations_checkpoint_granularity", "activation_checkpoint.mode", "recompute",
        "checkpoint_activations", "gradient_checkpointing"}) {
    const auto value = value_of(name);
    if (!value) continue;
    if (*value == "full" || *value == "selective" || *value == "none") return value;
    if (*value == "None" || *value == "null") return "none";
    const bool is_switch = name != "recompute";  // GPT-NeoX means generation by that
    if (is_switch && (*value == "True" || *value == "true")) return "full";
    if (is_switch && (*value == "False" || *value == "false")) return "none";
  }
  return std::nullopt;
}

// Megatron's own names for the stages of ZeRO.
std::optional<int64_t> read_sharding(const Settings& settings) {
  for (const char* name : {"use_torch_fsdp2", "use_megatron_fsdp", "use_custom_fsdp"})
    if (is_on(settings, name)) return std::nullopt;  // its own strategy gives the stage
  if (find_setting(settings, "use_distributed_optimizer") == nullptr) return std::nullopt;
  return is_on(settings, "use_distributed_optimizer") ? 1 : 0;
}

std::optional<bool> read_switch(const Settings& settings, std::string_view name) {
  if (find_setting(settings, name) == nullptr) return std::nullopt;
  return is_on(settings, name);
}

// From a launcher's arguments: processes on each node times nodes, 1 by torchrun's default.
std::optional<int64_t> read_launched(const Settings& settings) {
  const auto whole = [&](std::string_view name) { return whole_setting(settings, name, 1); };
  const auto product = [](std::optional<int64_t> a, std::optional<int64_t> b) -> std::optional<int64_t> {
    return a && b && *a < 1000 && *b < 1'000'000 ? std::optional(*a * *b) : std::nullopt;
  };
  if (const auto gpus = product(whole("trainer.devices"), whole("trainer.num_nodes"))) return gpus;
  const auto each = whole("nproc_per_node");
  if (find_setting(settings, "max_nodes") != nullptr)
    return whole("min_nodes") == whole("max_nodes") ? product(each, whole("max_nodes")) : std::nullopt;
  return find_setting(settings, "nnodes") != nullptr ? product(each, whole("nnodes")) : product(each, 1);
}

void apply_expert_settings(const Settings& settings, LoggedFacts& facts) {
  if (!shows_experts(settings)) return;
  apply_whole(k_expert_facts, settings, facts);
  if (!facts.routing) facts.routing = stated_routing(settings);
  if (!facts.dispatcher) facts.dispatcher = stated_dispatcher(settings);
}

}  // namespace

void apply_settings(const Settings& settings, LoggedFacts& facts) {
  apply_whole(k_whole_facts, settings, facts);
  apply_expert_settings(settings, facts);
  apply_reals(settings, facts);
  apply_texts(settings, facts);
  apply_model(settings, facts);
  if (!facts.precision) facts.precision = read_precision(settings);
  if (!facts.gpu_count) facts.gpu_count = read_launched(settings);
  if (!facts.recompute) facts.recompute = read_recompute(settings);
  if (!facts.zero_stage) facts.zero_stage = read_sharding(settings);
  if (!facts.sequence_parallel) facts.sequence_parallel = read_switch(settings, "sequence_parallel");
}

std::vector<EffectiveSetting> effective_settings(const LoggedFacts& facts) {
  std::vector<EffectiveSetting> settings;
  const auto add = [&](const char* key, const auto& value) {
    if (value) settings.push_back({key, fmt::format("{}", *value)});
  };
  add("sequence_length", facts.sequence_length);
  add("micro_batch_size", facts.micro_batch_size);
  add("global_batch_size", facts.global_batch_size);
  add("gradient_accumulation_steps", facts.accumulation_steps);
  add("steps", facts.max_steps);
  add("seed", facts.seed);
  if (facts.precision) settings.push_back({"precision", std::string(enum_name(*facts.precision))});
  add("optimizer", facts.optimizer);
  add("learning_rate", facts.learning_rate);
  add("min_learning_rate", facts.min_learning_rate);
  add("weight_decay", facts.weight_decay);
  add("clip_grad_norm", facts.clip_grad_norm);
  add("schedule", facts.schedule);
  add("warmup_steps", facts.warmup_steps);
  add("dataset", facts.dataset);
  add("num_devices", facts.gpu_count);
  add("tensor_model_parallel_size", facts.tensor_parallel);
  add("pipeline_model_parallel_size", facts.pipeline_parallel);
  add("data_parallel_size", facts.data_parallel);
  add("context_parallel_size", facts.context_parallel);
  add("expert_model_parallel_size", facts.expert_parallel);
  add("expert_tensor_parallel_size", facts.expert_tensor_parallel);
  if (facts.routing) settings.push_back({"routing", std::string(enum_name(*facts.routing))});
  if (facts.dispatcher) settings.push_back({"dispatcher", std::string(enum_name(*facts.dispatcher))});
  return settings;
}

}  // namespace tprimat::logs
