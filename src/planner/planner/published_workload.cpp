#include "planner/published_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/recipes.h"
#include "planner/row_completion.h"
#include "planner/row_experts.h"
#include "planner/row_memory.h"
#include "planner/row_rate.h"
#include "published/cells.h"
#include "published/row_inputs.h"

namespace tprimat::planner {
namespace {

constexpr double k_gpt2_vocabulary = 51200;    // padded by Megatron-LM
constexpr double k_bloom_vocabulary = 250880;  // arXiv 2211.05100, table 3

// Heads that a row does not print: of 128 channels each.
void assume_heads(PublishedWorkload& read, const PublishedRow& row) {
  ModelSpec& model = read.workload.shape;
  constexpr int64_t k_head = 128;
  if (model.num_attention_heads != 1 || model.head_dim <= 2 * k_head || count_cell(row, "heads")) return;
  model.num_attention_heads = model.num_key_value_heads = std::max<int64_t>(1, model.hidden_size / k_head);
  model.head_dim = k_head;
  read.assumptions.push_back("heads of 128");
}

// A dense GPT of which the parameter count and the hidden size are printed has so many layers: 12 l h^2 + V h.
std::optional<ModelSpec> shape_from_count(const PublishedRow& row) {
  const auto count = parse_printed_count(row.cell("params"));
  const auto hidden = count_cell(row, "hidden");
  if (!count || !hidden) return std::nullopt;
  PublishedRow complete = row;
  const auto h = static_cast<double>(*hidden);
  const double layers = std::round((count->value - k_bloom_vocabulary * h) / (12 * h * h));
  if (layers < 1 || layers > 1000) return std::nullopt;
  complete.cells["layers"] = std::to_string(static_cast<int64_t>(layers));
  return read_inputs(complete).shape;
}

// The vocabulary whose table of embeddings brings the printed parameter count about: GPT-2's, padded, or BLOOM's.
double assume_vocabulary(const PublishedRow& row, const ModelSpec& model) {
  constexpr std::pair<std::string_view, double> k_named[] = {{"qwen3", 151936}, {"llama 3", 128256}};
  for (const auto& [name, vocabulary] : k_named)
    if (mentions(lower_text(row.cell("model")), name)) return vocabulary;
  const auto count = parse_printed_count(row.cell("params"));
  if (!count) return k_gpt2_vocabulary;
  const auto off = [&](double vocabulary) {
    const double counted = static_cast<double>(model.num_layers) * layer_weights(model) +
                           vocabulary * static_cast<double>(model.hidden_size);
    return std::fabs(counted - count->value);
  };
  return off(k_bloom_vocabulary) < off(k_gpt2_vocabulary) ? k_bloom_vocabulary : k_gpt2_vocabulary;
}

constexpr const char* k_model_parallel = "model-parallel size ([1-9][0-9]{0,4})";

bool prints_layout(const PublishedRow& row, const Workload& workload, int64_t gpus) {
  return gpus == 1 || count_cell(row, "tp") || count_cell(row, "pp") || workload.family->fully_sharded ||
         count_cell(row, "ep") || mentions(lower_text(row.cell("sharding")), "fsdp") ||
         printed_number(row, "notes", k_model_parallel);
}

// Layers that a pipeline cannot share evenly, but could with embedding and loss among them.
bool needs_ends_as_layers(int64_t layers, int64_t chunks) { return layers % chunks != 0 && (layers + 2) % chunks == 0; }

void read_chunks(PublishedWorkload& read, const PublishedRow& row) {
  Workload& workload = read.workload;
  Layout& layout = workload.layout;
  layout.chunks = count_cell(row, "vp").value_or(1);
  const int64_t units = workload.shape.num_layers;
  layout.ends_as_layers = needs_ends_as_layers(units, layout.pipeline * layout.chunks);
  // Tables of sparse models state it or mean that there is none.
  if (count_cell(row, "vp") || layout.pipeline <= 1 || workload.shape.experts || prints_memory_alone(row)) return;
  const int64_t layers = std::max<int64_t>(1, (units + (layout.ends_as_layers ? 2 : 0)) / layout.pipeline);
  layout.chunks = workload.family->chunks == 0 ? layers : std::min(workload.family->chunks, layers);
  if (layout.chunks > 1) read.assumptions.push_back(fmt::format("VP {}", layout.chunks));
}

void read_sharding(Workload& workload, const PublishedRow& row) {
  const std::string text = lower_text(row.cell("sharding"));
  Sharding& sharding = workload.layout.sharding;
  if (workload.family->sharded_optimizer || mentions(text, "zero1")) sharding = Sharding::optimizer;
  if (mentions(text, "zero0")) sharding = Sharding::none;
  if (mentions(text, "zero2")) sharding = Sharding::gradients;
  const bool whole = mentions(text, "fsdp") && !mentions(text, "not resharded");
  if (workload.family->fully_sharded || mentions(text, "zero3") || whole) sharding = Sharding::weights;
}

// Where nothing is printed: fp16 of the programs of before 2022, bf16 of the others.
std::optional<PlanPrecision> precision_of(const PublishedRow& row, const Family& family) {
  const std::string text = lower_text(row.cell("precision"));
  if (mentions(text, "fp4")) return PlanPrecision::fp4;
  if (mentions(text, "fp8") || mentions(text, "float8")) return PlanPrecision::fp8;
  if (mentions(text, "fp16")) return PlanPrecision::fp16;
  if (text.empty() && mentions(lower_text(row.cell("framework")), "megatron-bridge")) return PlanPrecision::fp8;
  if (text.empty()) return family.dropout ? PlanPrecision::fp16 : PlanPrecision::bf16;
  if (mentions(text, "bf16") || mentions(text, "bfloat16")) return PlanPrecision::bf16;
  return std::nullopt;
}

void read_recompute(Workload& workload, const PublishedRow& row) {
  const std::string text = lower_text(row.cell("recompute"));
  Recompute& recompute = workload.layout.recompute;
  if (text.starts_with("full")) recompute = Recompute::full;
  if (text.starts_with("selective")) recompute = Recompute::selective;
  // Every second layer whole, in torchtitan's words.
  if (text == "selective layer") workload.recomputed_share = 1.2;
  // Megatron-LM of before 2205.05198 repeated all layers.
  if (text.empty() && workload.family->dropout) recompute = Recompute::full;
  // torchtitan's configurations keep every second product.
  if (text.empty() && workload.family->operator_recompute) recompute = Recompute::selective;
  // Sequence parallelism came with that paper.
  workload.layout.sequence_parallel = !workload.family->dropout || recompute == Recompute::selective;
  // Its tables of activation memory say it apart.
  const std::string notes = lower_text(row.cell("notes"));
  if (mentions(notes, "sequence parallel only")) workload.layout.sequence_parallel = true;
  if (mentions(notes, "selective only") || mentions(notes, "no sequence parallel"))
    workload.layout.sequence_parallel = false;
}

void read_release(Workload& workload, const PublishedRow& row) {
  auto found = find_in_notes(row, "release ([0-9][0-9.]{1,15})");
  if (found.empty()) found = find_in_cell(row, "framework", "([0-9]{2}\\.[0-9.]{2,8})");
  if (!found.empty()) workload.release = found[0];
  // Megatron-Bridge's own versions come with these containers of NeMo.
  constexpr std::pair<std::string_view, const char*> k_bridge[] = {
      {"0.2", "25.11"}, {"0.3", "26.02"}, {"0.4", "26.04"}, {"0.5", "26.06"}, {"0.6", "26.08"}};
  const auto version = find_in_cell(row, "framework", "[Mm]egatron-[Bb]ridge ([0-9]\\.[0-9])");
  for (const auto& [bridge, release] : k_bridge)
    if (found.empty() && !version.empty() && version[0] == bridge) workload.release = release;
}

// Megatron-LM has had experts since its Core.
const Family* find_program(const PublishedRow& row) {
  const Family* family = find_printed_family(row.cell("framework"));
  const bool megatron = family != nullptr && family->id == "megatron_2021";
  if (!megatron) return family;
  const auto shape = read_inputs(row).shape;
  // Papers of 2023 and later measured its successor.
  constexpr int64_t k_first_month = 2301;
  const auto month = find_in_cell(row, "source", "arXiv[ :]([0-9]{4})[.]");
  const bool later = !month.empty() && std::stoll(month[0]) >= k_first_month;
  const bool newer = later || (shape && (shape->experts || shape->latent_attention));
  return newer ? find_family("megatron_core") : family;
}

// These say why nothing can be predicted; nothing where something can.

std::string read_program(PublishedWorkload& read, const PublishedRow& row) {
  const Machine* machine = find_printed_machine(row.cell("gpu"));
  const Family* family = find_program(row);
  const auto precision = family != nullptr ? precision_of(row, *family) : std::nullopt;
  if (machine == nullptr) return "no such GPU in the planner's list";
  if (family == nullptr) return "no such framework in the planner's list";
  if (!precision || machine->peak(*precision) <= 0) return "no known peak for its precision";
  read.machine = *machine;
  read.workload.family = family;
  read.workload.precision = *precision;
  return "";
}

void read_details(Workload& workload, const PublishedRow& row) {
  const std::string notes = lower_text(row.cell("notes"));
  workload.asynchronous_tensor = !workload.family->operator_recompute || mentions(notes, "async");
  const std::string precision = lower_text(row.cell("precision"));
  workload.scaled_by_row = mentions(precision, "rowwise");
  // Megatron-Bridge prints "per tensor (MX)" in one cell.
  workload.scaled_by_block = mentions(precision, "mx") || mentions(notes, "second (parenthesised) figure");
  workload.compiled = !workload.family->operator_recompute || mentions(notes, "compile") || mentions(notes, "async");
}

// By name, as printed, or from the parameter count.
std::string read_shape(PublishedWorkload& read, const PublishedRow& row) {
  RowInputs inputs = read_inputs(row);
  if (!inputs.shape && (inputs.shape = shape_from_count(row)))
    read.assumptions.push_back(fmt::format("{} layers", inputs.shape->num_layers));
  const std::string notes = lower_text(row.cell("notes"));
  if (!inputs.counted_by_framework.empty()) return "attention that only its framework counts";
  if (!inputs.shape) return inputs.missing;
  if (inputs.shape->mamba) return "a hybrid with state-space layers";
  if (mentions(notes, "single transformer layer")) return "a single layer";
  read.workload.shape = *inputs.shape;
  if (!inputs.vocabulary_known) {
    ModelSpec& model = read.workload.shape;
    model.vocab_size = static_cast<int64_t>(assume_vocabulary(row, model));
    read.assumptions.push_back(fmt::format("vocabulary {}", model.vocab_size));
  }
  assume_heads(read, row);
  return "";
}

constexpr double k_max_places = 1 << 14;  // of chunks along a pipeline; more is no training's

std::string read_layout(PublishedWorkload& read, const PublishedRow& row, int64_t gpus) {
  Layout& layout = read.workload.layout;
  layout.tensor = count_cell(row, "tp").value_or(1);
  layout.pipeline = count_cell(row, "pp").value_or(1);
  layout.context = count_cell(row, "cp").value_or(1);
  if (const auto size = printed_number(row, "notes", k_model_parallel); size && layout.tensor * layout.pipeline == 1) {
    layout.tensor = std::min(*size, read.machine.gpus_per_domain);
    layout.pipeline = *size / layout.tensor;
  }
  if (!prints_layout(row, read.workload, gpus)) return "no layout";
  const double model =
      static_cast<double>(layout.tensor) * static_cast<double>(layout.pipeline) * static_cast<double>(layout.context);
  const double places = static_cast<double>(layout.pipeline) * static_cast<double>(count_cell(row, "vp").value_or(1));
  if (model > static_cast<double>(gpus) || layout.pipeline > read.workload.shape.num_layers || places > k_max_places)
    return "an inconsistent layout";
  layout.data = gpus / (layout.tensor * layout.pipeline * layout.context);
  read_chunks(read, row);
  read_sharding(read.workload, row);
  cut_unevenly(read, row);
  return read_expert_layout(read, row);
}

// Global batch and micro-batch, after the layout.
std::string read_batch(PublishedWorkload& read, const PublishedRow& row) {
  Workload& workload = read.workload;
  Layout& layout = workload.layout;
  workload.global_batch = read_global_batch(row, workload);
  if (workload.global_batch < 1) assume_global_batch(read, row);
  if (workload.global_batch < 1) return "no batch";
  const auto micro = count_cell(row, "mbs");
  layout.micro_batch = micro.value_or(prints_memory_alone(row) ? 1 : assume_micro_batch(workload));
  if (!micro) read.assumptions.push_back(fmt::format("MBS {}", layout.micro_batch));
  // torchtitan's local batch is cut into micro-batches of one sequence where there is a pipeline.
  if (workload.family->operator_recompute && layout.pipeline > 1) layout.micro_batch = 1;
  layout.micro_batch = std::min(layout.micro_batch, std::max<int64_t>(1, workload.global_batch / layout.data));
  return "";
}

}  // namespace

namespace {

void read_length(PublishedWorkload& read, const PublishedRow& row) {
  Workload& workload = read.workload;
  workload.sequence_length = count_cell(row, "seq").value_or(0);
  if (workload.sequence_length > 0) return;
  const auto following = following_length(row, workload.shape);
  workload.sequence_length = following.value_or(assume_length(row, read));
  read.assumptions.push_back(fmt::format("SL {}", workload.sequence_length));
  if (!following && workload.shape.experts && (read.usual == nullptr || !read.usual->states("length")))
    read.weak = "its sequence length is not printed";
}

void read_settings(PublishedWorkload& read, const PublishedRow& row) {
  read_details(read.workload, row);
  read_expert_features(read.workload, row);
  read_prediction_layers(read, row);
  const PublishedRow complete = complete_by_settings(read, complete_by_recipe(read, row));
  read_recompute(read.workload, complete);
  read_partial_recompute(read.workload, complete);
  read_tuning(read, row);
}

}  // namespace

PublishedWorkload read_published_workload(const PublishedRow& printed) {
  PublishedWorkload read;
  const CompletedRow completed = complete_row(printed);
  read.assumptions = completed.assumptions;
  const auto gpus = count_cell(completed.row, "n_gpus");
  read.missing = gpus ? read_program(read, completed.row) : "no number of GPUs";
  if (read.missing.empty()) read.missing = completed.missing;
  if (read.missing.empty()) read.missing = read_shape(read, completed.row);
  if (!read.missing.empty()) return read;
  read_release(read.workload, completed.row);
  read_usual_settings(read, completed.row);
  read_length(read, completed.row);
  const PublishedRow row = complete_layout(read, completed.row);
  read.missing = read_layout(read, row, *gpus);
  if (read.missing.empty()) read.missing = read_batch(read, row);
  if (!read.missing.empty()) return read;
  read_settings(read, row);
  for (const std::string& weak : {weakness_of(row), completed.weak})
    if (!weak.empty()) read.weak = weak;
  read_memory_settings(read, row);
  read_memory(read, row);
  if (const auto rate = printed_rate(read, row, *gpus); rate && !prints_memory_alone(row))
    read.tokens_per_second_per_gpu = *rate;
  else
    read.missing = "no rate";
  return read;
}

}  // namespace tprimat::planner
