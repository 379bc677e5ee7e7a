#include <fmt/format.h>

#include <array>

#include "compare/audit.h"
#include "compare/contender.h"
#include "compare/series.h"
#include "result/summary.h"
#include "text/format.h"

namespace tprimat {
namespace {

using Figures = std::optional<std::string>;

std::string words(const std::string& value) { return value; }
std::string words(int64_t value) { return fmt::format("{}", value); }
std::string words(double value) { return format_significant(value, 4); }
template <NamedEnum E>
std::string words(E value) {
  return std::string(enum_name(value));
}

// Known on both sides and different.
template <class T>
Figures differ(const std::optional<T>& reference, const std::optional<T>& subject) {
  if (!reference || !subject || *reference == *subject) return std::nullopt;
  return fmt::format("{} against {}", words(*reference), words(*subject));
}

void add(std::string& text, const char* name, const Figures& figures) {
  if (figures) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, *figures);
}
Figures unless_empty(std::string text) { return text.empty() ? Figures() : Figures(std::move(text)); }

Figures check_shape(const RunResult& a, const RunResult& b) {
  if (!a.model_info.shape || !b.model_info.shape)
    return differ(a.model_info.num_parameters, b.model_info.num_parameters);
  const ModelSpec &x = *a.model_info.shape, &y = *b.model_info.shape;
  const auto diff = [](auto p, auto q) { return differ(std::optional(p), std::optional(q)); };
  std::string text;
  add(text, "layers", diff(x.num_layers, y.num_layers));
  add(text, "hidden size", diff(x.hidden_size, y.hidden_size));
  add(text, "FFN size", diff(x.ffn_hidden_size, y.ffn_hidden_size));
  add(text, "heads", diff(x.num_attention_heads, y.num_attention_heads));
  add(text, "KV heads", diff(x.num_key_value_heads, y.num_key_value_heads));
  add(text, "head width", diff(x.head_dim, y.head_dim));
  add(text, "vocabulary", diff(x.vocab_size, y.vocab_size));
  add(text, "experts", differ(x.num_experts, y.num_experts));
  add(text, "experts per token", differ(x.experts_per_token, y.experts_per_token));
  add(text, "sliding window", differ(x.sliding_window, y.sliding_window));
  add(text, "MLP", diff(x.mlp, y.mlp));
  if (x.tied_embeddings != y.tied_embeddings) add(text, "tied embeddings", Figures("on one side only"));
  return unless_empty(text);
}

Figures check_sequence_length(const RunResult& a, const RunResult& b) {
  const Figures lengths = differ(a.training_config.sequence_length, b.training_config.sequence_length);
  const Figures tokens = differ(tokens_per_step(a), tokens_per_step(b));
  return lengths && tokens ? *lengths + "; tokens per step " + *tokens : lengths;
}

Figures check_batch(const RunResult& a, const RunResult& b) {
  if (differ(a.training_config.sequence_length, b.training_config.sequence_length)) return std::nullopt;
  return differ(a.training_config.global_batch_size, b.training_config.global_batch_size);
}

Figures check_steps(const RunResult& a, const RunResult& b) {
  return differ(a.training_config.max_steps, b.training_config.max_steps);
}
Figures check_precision(const RunResult& a, const RunResult& b) { return differ(a.precision, b.precision); }
Figures check_dataset(const RunResult& a, const RunResult& b) { return differ(a.dataset, b.dataset); }
Figures check_seed(const RunResult& a, const RunResult& b) {
  return differ(a.training_config.seed, b.training_config.seed);
}
Figures check_devices(const RunResult& a, const RunResult& b) { return differ(device_count(a), device_count(b)); }

Figures check_optimizer(const RunResult& a, const RunResult& b) {
  const TrainingConfig &x = a.training_config, &y = b.training_config;
  std::string text;
  add(text, "optimizer", differ(x.optimizer, y.optimizer));
  add(text, "weight decay", differ(x.weight_decay, y.weight_decay));
  add(text, "gradient clipping", differ(x.clip_grad_norm, y.clip_grad_norm));
  return unless_empty(text);
}

// The recorded series is what happened; what was asked for speaks only where a side has none.
Figures check_schedule(const RunResult& a, const RunResult& b) {
  if (!a.learning_rates.empty() && !b.learning_rates.empty()) {
    const auto gap = find_learning_rate_gap(a.learning_rates, b.learning_rates);
    if (!gap) return std::nullopt;
    return fmt::format("at step {} {:.2e} against {:.2e}", gap->step, gap->reference, gap->subject);
  }
  const TrainingConfig &x = a.training_config, &y = b.training_config;
  std::string text;
  add(text, "peak", differ(x.learning_rate, y.learning_rate));
  add(text, "end", differ(x.min_learning_rate, y.min_learning_rate));
  add(text, "shape", differ(x.schedule, y.schedule));
  add(text, "warm-up steps", differ(x.warmup_steps, y.warmup_steps));
  return unless_empty(text);
}

// Curves over steps are comparable only where a step is the same work.
Figures check_losses(const RunResult& a, const RunResult& b) {
  const auto x = tokens_per_step(a), y = tokens_per_step(b);
  if (!x || x != y) return std::nullopt;
  const auto gap = find_loss_gap(a.loss_values, b.loss_values);
  if (!gap) return std::nullopt;
  return fmt::format("{} against {} nats at step {}", format_significant(gap->reference, 3),
                     format_significant(gap->subject, 3), gap->step);
}

Figures check_layout(const RunResult& a, const RunResult& b) {
  const std::string x = describe_layout(a), y = describe_layout(b);
  if (x.empty() || y.empty() || x == y) return std::nullopt;
  return fmt::format("{} against {}", x, y);
}

Figures check_memory(const RunResult& a, const RunResult& b) {
  const MemoryMetrics &x = a.memory_metrics, &y = b.memory_metrics;
  if (const Figures methods = differ(x.measurement_method, y.measurement_method)) return "measured by " + *methods;
  const auto any = [](const MemoryMetrics& m) {
    return m.peak_memory_allocated_gb || m.peak_memory_reserved_gb || m.peak_device_used_gb;
  };
  const bool common = (x.peak_memory_allocated_gb && y.peak_memory_allocated_gb) ||
                      (x.peak_memory_reserved_gb && y.peak_memory_reserved_gb) ||
                      (x.peak_device_used_gb && y.peak_device_used_gb);
  return any(x) && any(y) && !common ? Figures("no kind of memory was recorded on both sides") : std::nullopt;
}

Figures check_formula(const RunResult& a, const RunResult& b) {
  if (a.derived.headline_formula.empty() || b.derived.headline_formula.empty()) return std::nullopt;
  return differ(std::optional(a.derived.headline_formula), std::optional(b.derived.headline_formula));
}

// "catalogue", "measured" or "config": the part of the peak's id before the first colon.
Figures check_peak(const RunResult& a, const RunResult& b) {
  if (!a.derived.peak || !b.derived.peak) return std::nullopt;
  const auto kind = [](const PeakInfo& peak) { return std::optional(peak.id.substr(0, peak.id.find(':'))); };
  return differ(kind(*a.derived.peak), kind(*b.derived.peak));
}

using enum Severity;
constexpr std::array k_pair_rules = {
    PairRule{"model_shape", error, "the models differ in shape", "train the same model on both sides", check_shape},
    PairRule{"sequence_length", error, "the sequence lengths differ, so a token is not the same work",
             "use one sequence length on both sides", check_sequence_length},
    PairRule{"precision", error, "the precisions differ", "use one precision, or compare within each", check_precision},
    PairRule{"learning_rate", error, "the learning-rate schedules differ, so it is not the same training",
             "give both frameworks the same schedule: peak, end, shape, warm-up", check_schedule},
    PairRule{"loss", error, "the loss curves disagree, so it is not the same training",
             "make data, initial weights, batch and schedule agree until the curves do", check_losses},
    PairRule{"optimizer", error, "the optimizers differ", "give both frameworks the same optimizer settings",
             check_optimizer},
    PairRule{"dataset", warning, "the data differs", "train on the same tokens in the same order", check_dataset},
    PairRule{"steps", warning, "the numbers of steps differ", "run the same number of steps", check_steps},
    PairRule{"device_count", warning, "the numbers of devices differ, so rates per device hold the cost of scaling",
             "compare equal numbers of devices", check_devices},
    PairRule{"memory_meaning", warning, "the memory figures mean different things and are not compared",
             "record the same kind of memory on both sides", check_memory},
    PairRule{"flop_formula", warning, "the FLOPs are counted by different formulas, so MFU is not compared",
             "derive both results again with this version", check_formula},
    PairRule{"peak", warning, "the peaks behind MFU are of different kinds, so MFU is not compared",
             "use catalogue peaks, or measured ones, for both", check_peak},
    PairRule{"batch", note, "only the batch differs: rates per token stay comparable, times per step do not", "",
             check_batch},
    PairRule{"layout", note, "the parallel layouts differ, as is expected where each side runs at its best", "",
             check_layout},
    PairRule{"seed", note, "the seeds differ", "", check_seed},
};

}  // namespace

std::span<const PairRule> pair_rules() { return k_pair_rules; }

}  // namespace tprimat
