#include "published/row_inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "published/cells.h"
#include "published/framework_formulas.h"
#include "spec/hardware_catalogue.h"
#include "spec/tsv_rows.h"

namespace tprimat::planner {
namespace {

constexpr double k_max_model_parameters = 1e15;

// 0 for a cell without a count.
int64_t whole_cell(const PublishedRow& row, std::string_view column) { return count_cell(row, column).value_or(0); }

// The name of the shape without the words that say how it was trained, or that it was cut to "(4 layers)" or
// "(4 layers + MTP)".
std::string shape_name(const std::string& model) {
  std::string lower = lower_text(model);
  const bool cut = lower.ends_with(" layers)") || lower.ends_with(" layers + mtp)");
  if (const size_t at = lower.rfind(" ("); at != std::string::npos && cut) lower.erase(at);
  for (const std::string_view word : {"finetuning", "finetune", "pretraining", "lora", "sft"})
    if (const size_t at = lower.find(word); at != std::string::npos) lower.erase(at, word.size());
  return lower;
}

TuningKind tuning_of(const PublishedRow& row) {
  const std::string said = lower_text(row.cell("model")) + ' ' + lower_text(row.cell("notes"));
  if (mentions(said, "lora")) return TuningKind::adapters;
  return mentions(said, "sft") || mentions(said, "finetun") ? TuningKind::whole : TuningKind::none;
}

// A dense GPT: what the papers print is layers, hidden size and perhaps heads; the rest has its usual proportion.
ModelSpec printed_shape(const PublishedRow& row, int64_t hidden) {
  ModelSpec m;
  m.hidden_size = hidden;
  m.num_layers = whole_cell(row, "layers");
  const int64_t heads = whole_cell(row, "heads"), ffn = whole_cell(row, "ffn");
  // Where the heads are not printed, or the source's head width is cut, only their whole width matters.
  m.num_attention_heads = heads > 0 && hidden % heads == 0 ? heads : 1;
  m.head_dim = hidden / m.num_attention_heads;
  const int64_t key_heads = whole_cell(row, "kv_heads");
  m.num_key_value_heads = key_heads > 0 && m.num_attention_heads % key_heads == 0 ? key_heads : m.num_attention_heads;
  m.ffn_hidden_size = ffn > 0 ? ffn : 4 * hidden;
  m.mlp = m.ffn_hidden_size == 4 * hidden ? MlpKind::gelu : MlpKind::swiglu;
  m.tied_embeddings = true;
  m.max_position_embeddings = 1;
  m.position = PositionKind::rope;
  return m;
}

bool is_countable(const ModelSpec& m) {
  const auto width = static_cast<double>(std::max(m.hidden_size, m.ffn_hidden_size));
  const double rough = static_cast<double>(m.num_layers) * static_cast<double>(m.hidden_size) * width *
                       static_cast<double>(m.experts ? m.experts->count : 1);
  return m.num_layers > 0 && m.hidden_size > 0 && rough < k_max_model_parameters;
}

// Expert parallelism needs experts.
bool is_mixture(const PublishedRow& row) { return whole_cell(row, "ep") > 1; }

// What no shape of ours says, though the row may print sizes.
bool has_no_shape(RowInputs& inputs, const PublishedRow& row) {
  const bool counted = framework_flops(row.cell("model"), whole_cell(row, "layers"), 1).has_value();
  if (mentions(lower_text(row.cell("notes")), "vision encoder"))
    inputs.missing = "no work of the vision encoder: the row does not state its images";
  else if (counted && tuning_of(row) != TuningKind::none)
    inputs.missing = "no formula of its attention for fine-tuning";
  else if (counted)
    inputs.counted_by_framework = row.cell("model");
  return !inputs.missing.empty() || counted;
}

void find_shape(RowInputs& inputs, const PublishedRow& row) {
  if (has_no_shape(inputs, row)) return;
  const int64_t hidden = whole_cell(row, "hidden"), layers = whole_cell(row, "layers");
  const int64_t vocabulary = whole_cell(row, "vocab");
  const auto known = find_counted_model(shape_name(row.cell("model")));
  if (hidden > 0 && (!known || known->spec.hidden_size != hidden)) {
    if (!is_mixture(row)) inputs.shape = printed_shape(row, hidden);
  } else if (known) {
    inputs.shape = known->spec;
    inputs.vocabulary_known = true;
    if (layers > 0 && layers != known->spec.num_layers) inputs.own_layers = known->spec.num_layers;
    if (layers > 0) inputs.shape->num_layers = std::max(layers, least_layers(known->spec));
  }
  if (!inputs.shape) {
    inputs.missing = fmt::format("no shape: the row prints none, and '{}' is in no catalogue", row.cell("model"));
  } else if (!is_countable(*inputs.shape)) {
    inputs.missing = "no number of layers for the hidden size";
    inputs.shape.reset();
  } else if (vocabulary > 0) {
    inputs.shape->vocab_size = vocabulary;
    inputs.vocabulary_known = true;
  }
}

// Lengths that trainings of language models use, tried where a row prints none.
constexpr int64_t k_usual_lengths[] = {8192, 4096, 2048, 1024};

// Rows whose recipe trains at another length than they print, which their tokens/s then follow.
struct RecipeLength {
  std::string_view model;
  int64_t length;
  std::string_view source;
};
constexpr RecipeLength k_recipe_lengths[] = {
    {"nemotron3_super", 8192, "NVIDIA-NeMo/Megatron-Bridge recipes/nemotronh/h100/nemotron_3_super.py at 067f987"}};

void find_sequences(RowInputs& inputs, const PublishedRow& row) {
  if (const int64_t printed = whole_cell(row, "seq"); printed > 0) {
    inputs.sequences.push_back({printed, ""});
    for (const RecipeLength& recipe : k_recipe_lengths)
      if (inputs.shape && inputs.shape->name == recipe.model && printed != recipe.length)
        inputs.sequences.push_back({recipe.length, "recipe_length"});
    return;
  }
  const auto rate = parse_printed(row.cell("tokens_per_s")), step = parse_printed(row.cell("step_time_s"));
  const int64_t batch = whole_cell(row, "gbs");
  for (const int64_t length : k_usual_lengths) {
    // tokens/s x step time / batch is the length, where all three are printed
    const bool follows = rate && step && batch > 0 &&
                         (Bounds{rate->either().low * step->rounded().low, rate->either().high * step->rounded().high} *
                          (1.0 / static_cast<double>(batch)))
                             .meets({static_cast<double>(length), static_cast<double>(length)});
    inputs.sequences.push_back({length, follows ? "" : "assumed_length"});
  }
}

void add_step_rate(RowInputs& inputs, const PublishedRow& row, double gpus, double batch, const char* deviation) {
  const auto step = parse_printed(row.cell("step_time_s"));
  if (!step || batch <= 0) return;
  for (const SequenceChoice& choice : inputs.sequences) {
    const double tokens = batch * static_cast<double>(choice.length) / gpus;
    inputs.rates.push_back({Bounds{tokens, tokens} / step->rounded(), "step time", deviation, choice.length});
  }
}

// "training time for 300B tokens 74 days"
void add_training_time(RowInputs& inputs, const PublishedRow& row, double gpus) {
  const auto found = find_in_notes(row, "training time for ([0-9]{1,6})B tokens ([0-9]{1,6}) days");
  if (found.empty()) return;
  const double tokens = std::stod(found[0]) * 1e9 / gpus;
  const auto days = parse_printed(found[1]);
  if (!days) return;
  inputs.rates.push_back(
      {Bounds{tokens, tokens} / (days->rounded() * 86400.0), fmt::format("time for {}B tokens", found[0]), "", 0});
}

// "GBS=512" in the notes beside another batch in the row
void add_noted_batch(RowInputs& inputs, const PublishedRow& row, double gpus) {
  const auto found = find_in_notes(row, "GBS=([0-9]{1,7})");
  if (!found.empty()) add_step_rate(inputs, row, gpus, std::stod(found[0]), "noted_batch");
}

// A rate per GPU that is a whole number of sequences per second of the job was made from that number, which is then all
// that is known.
void add_whole_samples(RowInputs& inputs, double gpus, const Printed& rate) {
  for (const SequenceChoice& choice : inputs.sequences) {
    const double per_sample = static_cast<double>(choice.length) / gpus;
    const double samples = std::round(rate.value / per_sample);
    if (samples < 1 || std::fabs(samples * per_sample - rate.value) > rate.unit) continue;
    inputs.rates.push_back({{(samples - 0.5) * per_sample, (samples + 0.5) * per_sample},
                            "tokens/s per GPU",
                            "whole_samples",
                            choice.length});
  }
}

// Likewise a rate that is what a step time with two decimals gives.
void add_rounded_step(RowInputs& inputs, const PublishedRow& row, double gpus, const Printed& rate) {
  const auto batch = static_cast<double>(whole_cell(row, "gbs"));
  if (batch <= 0) return;
  for (const SequenceChoice& choice : inputs.sequences) {
    const double tokens = batch * static_cast<double>(choice.length) / gpus;
    const double seconds = std::round(100 * tokens / rate.value) / 100;
    if (seconds < 0.1 || !rate.either().meets({tokens / seconds, tokens / seconds})) continue;
    inputs.rates.push_back({Bounds{tokens, tokens} / Bounds{seconds - 0.005, seconds + 0.005}, "tokens/s per GPU",
                            "rounded_step", choice.length});
  }
}

void find_rates(RowInputs& inputs, const PublishedRow& row) {
  const auto whole = parse_printed(row.cell("tokens_per_s")), each = parse_printed(row.cell("tokens_per_s_per_gpu"));
  const auto printed_gpus = parse_printed(row.cell("n_gpus"));
  const double gpus = printed_gpus ? printed_gpus->value : 0;
  if (gpus > 0) add_step_rate(inputs, row, gpus, static_cast<double>(whole_cell(row, "gbs")), "");
  if (gpus > 0 && whole) inputs.rates.push_back({whole->either() * (1 / gpus), "tokens/s", "", 0});
  if (each) inputs.rates.push_back({each->either(), "tokens/s per GPU", "", 0});
  if (gpus <= 0) return;
  add_training_time(inputs, row, gpus);
  add_noted_batch(inputs, row, gpus);
  if (!each || whole || !row.cell("step_time_s").empty()) return;
  add_whole_samples(inputs, gpus, *each);
  add_rounded_step(inputs, row, gpus, *each);
}

std::optional<Precision> printed_precision(const std::string& lower) {
  if (mentions(lower, "fp4")) return std::nullopt;  // no catalogue states a dense peak
  for (const std::string_view word : {"fp8", "float8"})
    if (mentions(lower, word)) return Precision::fp8;
  if (mentions(lower, "bf16") || mentions(lower, "bfloat16")) return Precision::bf16;
  if (mentions(lower, "fp16") || mentions(lower, "float16")) return Precision::fp16;
  return std::nullopt;
}

// Words of a family's name as tables spell it: "DGX-GB200", "h100_80gb", "H100-SXM 96GB HBM2e 2.4TB/s 500W".
constexpr std::string_view k_gpu_families[] = {"gb300", "gb200",  "b300",   "b200",   "h200",   "h100",
                                               "a100",  "mi355x", "mi350x", "mi325x", "mi300x", "mi250x"};

// Forms of a part with a peak of their own; an MI250X is one die, as drivers count, unless both are named.
constexpr std::string_view k_forms[] = {"pcie", "nvl", "2gcd"};

// The parts that a name may mean. All variants of a family that are in question have to agree on the peak.
std::vector<HardwareSpec> parts_named(const std::string& gpu) {
  if (const auto part = find_hardware(gpu)) return {*part};
  const std::string folded = fold_gpu_name(gpu);
  std::vector<HardwareSpec> parts;
  for (const std::string_view family : k_gpu_families) {
    if (folded.find(family) == std::string::npos) continue;
    for (const HardwareSpec& part : hardware_catalogue()) {
      const std::string id = fold_name(part.id);
      const bool same_form = std::ranges::all_of(k_forms, [&](std::string_view form) {
        return (id.find(form) != std::string::npos) == (folded.find(form) != std::string::npos);
      });
      if (id.starts_with(family) && same_form) parts.push_back(part);
    }
    return parts;
  }
  return parts;
}

std::optional<double> common_peak(const std::vector<HardwareSpec>& parts, Precision precision) {
  std::optional<double> peak;
  for (const HardwareSpec& part : parts) {
    const auto found = part.dense_peak_flops.find(precision);
    if (found == part.dense_peak_flops.end() || (peak && *peak != found->second)) return std::nullopt;
    peak = found->second;
  }
  return peak;
}

// Peaks that sources use beside the datasheets' that the catalogue holds.
struct OtherPeak {
  std::string_view part;
  Precision precision;
  double teraflops;
  std::string_view why;
};
constexpr OtherPeak k_other_peaks[] = {
    {"GB200", Precision::bf16, 2450, "NVIDIA/dgxc-benchmarking README.md"},
    {"GB200", Precision::fp8, 4900, "NVIDIA/dgxc-benchmarking README.md"},
    {"GB200", Precision::bf16, 4900, "NVIDIA/dgxc-benchmarking llama4/README.md: FP8's peak under BF16 figures"},
    {"GB300", Precision::bf16, 2450, "NVIDIA/dgxc-benchmarking README.md"},
    {"GB300", Precision::fp8, 4900, "NVIDIA/dgxc-benchmarking README.md"},
    {"H100-SXM-80GB", Precision::bf16, 989.5, "half of 1979, as in composer/callbacks/speed_monitor.py"},
    {"H200-SXM-141GB", Precision::bf16, 989.5, "half of 1979, as in composer/callbacks/speed_monitor.py"},
    {"MI300X", Precision::bf16, 1300, "stas00/ml-engineering compute/accelerator/README.md"},
    {"MI300X", Precision::fp8, 2610, "stas00/ml-engineering compute/accelerator/README.md"},
    {"MI300X", Precision::fp8, 1300, "AMD-AGI/Primus ut_out/ at b3d0efd: BF16's peak under FP8 figures"},
    {"MI325X", Precision::bf16, 1300, "stas00/ml-engineering compute/accelerator/README.md"},
    {"MI325X", Precision::fp8, 2610, "stas00/ml-engineering compute/accelerator/README.md"},
};

// As "H100-SXM-80GB bf16 989"; "A100 bf16 312" where several variants may be meant.
void add_peak(RowInputs& inputs, const std::vector<HardwareSpec>& parts, Precision precision,
              std::optional<double> flops, const char* deviation) {
  if (!flops) return;
  const std::string& id = parts.front().id;
  inputs.peaks.push_back({*flops,
                          fmt::format("{} {} {:g}", parts.size() == 1 ? id : id.substr(0, id.find('-')),
                                      enum_name(precision), *flops / 1e12),
                          deviation});
}

void find_peaks(RowInputs& inputs, const PublishedRow& row) {
  const std::string precision_cell = lower_text(row.cell("precision"));
  const std::vector<HardwareSpec> parts = parts_named(row.cell("gpu"));
  if (parts.empty()) return;
  const auto stated = printed_precision(precision_cell);
  if (!stated && !precision_cell.empty()) return;
  const Precision precision = stated.value_or(Precision::bf16);
  add_peak(inputs, parts, precision, common_peak(parts, precision), stated ? "" : "assumed_precision");
  for (const OtherPeak& other : k_other_peaks)
    if (other.part == parts.front().id && other.precision == precision)
      add_peak(inputs, parts, precision, other.teraflops * 1e12, "other_peak");
  if (precision == Precision::fp8)
    add_peak(inputs, parts, Precision::bf16, common_peak(parts, Precision::bf16), "fp8_over_bf16_peak");
}

}  // namespace

RowInputs read_inputs(const PublishedRow& row) {
  RowInputs inputs;
  find_shape(inputs, row);
  find_sequences(inputs, row);
  find_rates(inputs, row);
  find_peaks(inputs, row);
  inputs.tensor_parallel = whole_cell(row, "tp");
  const std::string framework = lower_text(row.cell("framework"));
  inputs.logs_one_decimal = mentions(framework, "megatron") && !mentions(framework, "deepspeed");
  inputs.tuning = tuning_of(row);
  const std::string recompute = lower_text(row.cell("recompute"));
  if (recompute.starts_with("full")) inputs.recompute = Recompute::full;
  if (recompute.starts_with("selective")) inputs.recompute = Recompute::selective;
  if (recompute == "none") inputs.recompute = Recompute::none;
  if (const auto printed = parse_printed_count(row.cell("params")); printed && printed->unit == 1)
    inputs.exact_parameters = static_cast<int64_t>(printed->value);
  if (inputs.missing.empty() && inputs.rates.empty()) inputs.missing = "no step time and no tokens/s";
  return inputs;
}

}  // namespace tprimat::planner
