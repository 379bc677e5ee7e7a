#include "config/layout_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "spec/pipeline_layout.h"

namespace tprimat::suite {
namespace {

bool divides(int64_t part, int64_t whole) { return whole % part == 0; }

class RuleList {
 public:
  RuleList(const LayoutTask& task, const ParallelSpec& layout) : task_(task), layout_(layout) {}

  std::vector<std::string> check(std::optional<int64_t> stated_accumulation) && {
    check_devices();
    check_batch(stated_accumulation);
    check_tensor();
    check_pipeline();
    check_context();
    check_experts();
    return std::move(broken_);
  }

 private:
  void require(bool holds, std::string sentence) {
    if (!holds) broken_.push_back(std::move(sentence));
  }

  void check_devices() {
    // In floating point: the product of four stated sizes may exceed 2^63.
    const double ranks = static_cast<double>(layout_.tensor) * static_cast<double>(layout_.pipeline) *
                         static_cast<double>(layout_.data) * static_cast<double>(layout_.context);
    require(ranks == static_cast<double>(task_.devices),
            fmt::format("TP {} x PP {} x DP {} x CP {} = {:.0f} does not match the number of devices {}",
                        layout_.tensor, layout_.pipeline, layout_.data, layout_.context, ranks, task_.devices));
  }

  void check_batch(std::optional<int64_t> stated_accumulation) {
    const int64_t unit = task_.micro_batch_size * layout_.data;
    const bool whole = divides(unit, task_.global_batch_size);
    require(whole, fmt::format("GBS {} is not a multiple of MBS {} x DP {} = {}", task_.global_batch_size,
                               task_.micro_batch_size, layout_.data, unit));
    if (!whole || !stated_accumulation) return;
    const int64_t follows = task_.global_batch_size / unit;
    require(*stated_accumulation == follows,
            fmt::format("GA {} contradicts GBS {} / (MBS {} x DP {}) = {}", *stated_accumulation,
                        task_.global_batch_size, task_.micro_batch_size, layout_.data, follows));
  }

  void check_tensor() {
    const ModelSpec& model = task_.model;
    const int64_t tensor = layout_.tensor, kv = model.num_key_value_heads;
    require(divides(tensor, model.num_attention_heads),
            fmt::format("TP {} does not divide the {} attention heads", tensor, model.num_attention_heads));
    require(model.latent_attention || divides(tensor, kv) || divides(kv, tensor),
            fmt::format("TP {} is neither a divisor nor a multiple of the {} KV heads", tensor, kv));
    require(model.dense_layers() == 0 || divides(tensor, model.ffn_hidden_size),
            fmt::format("TP {} does not divide ffn_hidden_size {}", tensor, model.ffn_hidden_size));
  }

  // EP and ETP take ranks of TP, CP and DP; shared experts are split by TP.
  void check_experts() {
    const int64_t parts = layout_.expert_ranks(), tensor = layout_.expert_tensor_ranks();
    if (!task_.model.experts)
      return require(
          parts == 1 && tensor == 1,
          fmt::format("EP {} and ETP {} need a model with experts, but {} is dense", parts, tensor, task_.model.name));
    const Experts& experts = *task_.model.experts;
    require(divides(parts, experts.count), fmt::format("EP {} does not divide the {} experts", parts, experts.count));
    require(divides(tensor, experts.ffn_hidden_size),
            fmt::format("ETP {} does not divide ffn_hidden_size {} of an expert", tensor, experts.ffn_hidden_size));
    require(divides(layout_.tensor, experts.shared_ffn_hidden_size),
            fmt::format("TP {} does not divide shared_ffn_hidden_size {} of the experts", layout_.tensor,
                        experts.shared_ffn_hidden_size));
    const int64_t ranks = layout_.tensor * layout_.context * layout_.data;
    require(divides(parts * tensor, ranks),
            fmt::format("EP {} x ETP {} = {} does not divide TP {} x CP {} x DP {} = {}", parts, tensor, parts * tensor,
                        layout_.tensor, layout_.context, layout_.data, ranks));
  }

  void check_stages() {
    if (layout_.pipeline_layout) {
      const std::string fault =
          find_layout_fault(*layout_.pipeline_layout, task_.model, layout_.pipeline, layout_.virtual_pipeline);
      require(fault.empty(), fault);
      return require(!layout_.ends_as_layers, "pipeline_layout and embedding_and_loss_as_layers contradict each other");
    }
    const int64_t stages = layout_.pipeline * layout_.virtual_pipeline;
    require(
        divides(stages, layout_.pipeline_units(task_.model.num_layers)),
        fmt::format("PP {} x VP {} = {} does not divide the {} layers{}", layout_.pipeline, layout_.virtual_pipeline,
                    stages, task_.model.num_layers, layout_.ends_as_layers ? ", the embedding and the loss" : ""));
  }

  void check_pipeline() {
    check_stages();
    require(!layout_.ends_as_layers || layout_.pipeline > 1, "embedding_and_loss_as_layers needs PP above 1");
    require(layout_.virtual_pipeline == 1 || layout_.pipeline > 1,
            fmt::format("VP {} needs PP above 1", layout_.virtual_pipeline));
    const int64_t unit = task_.micro_batch_size * layout_.data;
    if (layout_.virtual_pipeline == 1 || !divides(unit, task_.global_batch_size)) return;
    const int64_t micro_batches = task_.global_batch_size / unit;
    require(divides(layout_.pipeline, micro_batches),
            fmt::format("interleaving with VP {} needs PP {} to divide GA {}", layout_.virtual_pipeline,
                        layout_.pipeline, micro_batches));
  }

  // Megatron-LM balances causal work by giving each rank two chunks of the sequence, one from each end.
  void check_context() {
    const int64_t chunks = layout_.context == 1 ? 1 : 2 * layout_.context;
    require(divides(chunks, task_.sequence_length),
            fmt::format("SL {} is not a multiple of 2 x CP = {}", task_.sequence_length, chunks));
    if (!layout_.sequence_parallel || !divides(chunks, task_.sequence_length)) return;
    const int64_t tokens = task_.micro_batch_size * (task_.sequence_length / layout_.context);
    require(
        divides(layout_.tensor, tokens),
        fmt::format("SP splits the MBS {} x SL {} / CP {} = {} tokens of a micro-batch, which are not divisible by TP "
                    "{}",
                    task_.micro_batch_size, task_.sequence_length, layout_.context, tokens, layout_.tensor));
  }

  const LayoutTask& task_;
  const ParallelSpec& layout_;
  std::vector<std::string> broken_;
};

std::vector<int64_t> list_divisors(int64_t number) {
  std::vector<int64_t> divisors;
  for (int64_t candidate = 1; candidate * candidate <= number; ++candidate) {
    if (number % candidate != 0) continue;
    divisors.push_back(candidate);
    if (candidate != number / candidate) divisors.push_back(number / candidate);
  }
  return divisors;
}

// How far a layout is from the wanted one: the factors between their sizes, in powers of two. TP and PP decide memory,
// so DP is free.
double distance(const ParallelSpec& layout, const ParallelSpec& wanted) {
  const auto apart = [](int64_t a, int64_t b) {
    return std::fabs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
  };
  const double tie_break = 1e-3 * std::log2(static_cast<double>(layout.tensor * layout.pipeline));
  return apart(layout.tensor, wanted.tensor) + apart(layout.pipeline, wanted.pipeline) +
         apart(layout.context, wanted.context) + apart(layout.expert_ranks(), wanted.expert_ranks()) +
         apart(layout.expert_tensor_ranks(), wanted.expert_tensor_ranks()) + tie_break;
}

// The largest number up to `wanted` that divides both.
int64_t largest_divisor(int64_t wanted, int64_t a, int64_t b) {
  int64_t number = std::min({wanted, a, b});
  while (!divides(number, a) || !divides(number, b)) --number;
  return number;
}

}  // namespace

std::vector<std::string> list_broken_rules(const LayoutTask& task, const ParallelSpec& layout,
                                           std::optional<int64_t> stated_accumulation) {
  return RuleList(task, layout).check(stated_accumulation);
}

void fit_expert_sizes(const ModelSpec& model, ParallelSpec& layout) {
  const ParallelSpec wanted = layout;
  layout.expert.reset(), layout.expert_tensor.reset();
  if (!model.experts) return;
  const int64_t ranks = layout.tensor * layout.context * layout.data;
  if (wanted.expert) layout.expert = largest_divisor(*wanted.expert, model.experts->count, ranks);
  if (wanted.expert_tensor)
    layout.expert_tensor =
        largest_divisor(*wanted.expert_tensor, model.experts->ffn_hidden_size, ranks / layout.expert_ranks());
}

std::optional<ParallelSpec> find_sound_layout(const LayoutTask& task, const ParallelSpec& wanted) {
  std::optional<ParallelSpec> best;
  const auto consider = [&](ParallelSpec layout) {
    const int64_t others = layout.tensor * layout.pipeline * layout.context;
    if (task.devices % others != 0) return;
    layout.data = task.devices / others;
    fit_expert_sizes(task.model, layout);
    if (!list_broken_rules(task, layout).empty()) return;
    if (!best || distance(layout, wanted) < distance(*best, wanted)) best = layout;
  };
  for (const int64_t tensor : list_divisors(task.devices))
    for (const int64_t pipeline : list_divisors(task.devices / tensor)) {
      if (pipeline > task.model.num_layers || tensor > task.model.num_attention_heads) continue;
      ParallelSpec layout = wanted;
      layout.tensor = tensor;
      layout.pipeline = pipeline;
      layout.ends_as_layers = wanted.ends_as_layers && pipeline > 1;
      layout.pipeline_layout.reset();
      for (const int64_t context : {int64_t{1}, wanted.context})
        for (const int64_t stages : {int64_t{1}, wanted.virtual_pipeline}) {
          layout.context = context;
          layout.virtual_pipeline = stages;
          consider(layout);
        }
    }
  return best;
}

std::string print_layout(const LayoutTask& task, const ParallelSpec& layout) {
  std::string text = fmt::format("TP: {}, PP: {}, ", layout.tensor, layout.pipeline);
  if (layout.virtual_pipeline != 1) text += fmt::format("VP: {}, ", layout.virtual_pipeline);
  if (layout.context != 1) text += fmt::format("CP: {}, ", layout.context);
  if (layout.expert_ranks() != 1) text += fmt::format("EP: {}, ", *layout.expert);
  if (layout.expert_tensor_ranks() != 1) text += fmt::format("ETP: {}, ", *layout.expert_tensor);
  if (layout.ends_as_layers) text += "embedding_and_loss_as_layers: true, ";
  if (layout.pipeline_layout) text += fmt::format("pipeline_layout: \"{}\", ", *layout.pipeline_layout);
  const std::string zero = layout.zero_stage == 0 ? "" : fmt::format(", ZeRO: {}", layout.zero_stage);
  return fmt::format("{{{}DP: {}, GA: {}{}}}", text, layout.data,
                     task.global_batch_size / (task.micro_batch_size * layout.data), zero);
}

std::string suggest_layout(const LayoutTask& task, const ParallelSpec& wanted) {
  if (const auto sound = find_sound_layout(task, wanted)) return "a valid layout: " + print_layout(task, *sound);
  const int64_t unit = task.micro_batch_size * task.devices;
  LayoutTask larger = task;
  larger.global_batch_size = (task.global_batch_size + unit - 1) / unit * unit;
  if (const auto sound = find_sound_layout(larger, wanted))
    return fmt::format("with global_batch_size: {}, a valid layout: {}", larger.global_batch_size,
                       print_layout(larger, *sound));
  return fmt::format("no layout on {} devices fits this model; change the number of devices", task.devices);
}

namespace {

// Weights of the routed experts, which EP and ETP split and the other ranks of TP x CP x DP share.
double count_routed_weights(const ModelSpec& model) {
  if (!model.experts) return 0;
  const Experts& experts = *model.experts;
  const double matrices = model.mlp == MlpKind::swiglu ? 3 : 2;
  return matrices * static_cast<double>(model.expert_layers()) * static_cast<double>(experts.count) *
         static_cast<double>(experts.latent_size.value_or(model.hidden_size)) *
         static_cast<double>(experts.ffn_hidden_size);
}

}  // namespace

double estimate_state_bytes(const ModelSpec& model, const ParallelSpec& layout, Precision precision,
                            const OptimizerSpec& optimizer, int64_t zero_stage) {
  const bool full = precision == Precision::fp32 || precision == Precision::tf32;
  const double masters = full || !optimizer.master_weights ? 0 : 4;
  const double moments = optimizer.moments == MomentFormat::bf16 ? 4 : 8;
  const auto bytes = [&](double sharers) {
    const auto shared_from = [&](int64_t stage) { return zero_stage >= stage ? sharers : 1.0; };
    return (masters + moments) / shared_from(1) + 4 / shared_from(2) + (full ? 4 : 2) / shared_from(3);
  };
  const auto data = static_cast<double>(layout.data);
  const double tensor = static_cast<double>(layout.tensor), stages = static_cast<double>(layout.pipeline);
  const double parts = static_cast<double>(layout.expert_ranks() * layout.expert_tensor_ranks());
  const double routed = count_routed_weights(model);
  const double others = static_cast<double>(count_parameters(model).total()) - routed;
  const double replicas = tensor * static_cast<double>(layout.context) * data / parts;
  return others * bytes(data) / (tensor * stages) + routed * bytes(replicas) / (parts * stages);
}

}  // namespace tprimat::suite
