#include "planner/row_completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "published/cells.h"
#include "published/row_inputs.h"
#include "published/submissions.h"
#include "spec/tsv_rows.h"

namespace tprimat::planner {
namespace {

// What configurations of a source say of its rows: cells that they do not print.
struct PrimusRecipe {
  std::string_view source, model;  // occur in these columns
  std::string_view cells;          // "seq=4096 mbs=1"; a value's '_' stands for a space
  std::string_view weak;           // why its rows are left out of fits
};
constexpr PrimusRecipe k_primus_recipes[] = {
    // 32 micro-batches: what the bubbles of its schedules come to. Its TFLOP/s are half of what its tokens/s need.
    {"primus_pipeline.md", "llama 2 7b", "seq=4096 precision=bf16 mbs=1 gbs=32 tp=1",
     "its TFLOP/s and tokens/s differ by a factor of two"},
    // examples/moe_package/run_qwen_235B_a22B_pretrain_mi355x.sh at fd1eeab, whose batch is that of 32 nodes
    {"primus_pipeline.md", "qwen3 235b", "seq=4096 precision=bf16 mbs=4 gbs=1024 tp=1 recompute=full_12_layers",
     "its batch is not published"},
    // examples/megatron/configs/MI325X/llama3.1_70B-FP8-pretrain.yaml and llama3.1_70B-BF16-pretrain.yaml at fd1eeab
    {"projection/projection.md", "llama 3.1 70b", "recompute=full_72_layers", "quoted at second hand"},
    {"projection/projection.md", "llama 3.1 8b", "ga=8 recompute=none", "quoted at second hand"},
    // examples/moe_package/run_deepseek_v2_lite_pretrain_mi355x.sh and run_deepseek_v2_pretrain_mi355x.sh at fd1eeab
    {"examples/moe_package", "deepseek-v2-lite", "ga=8 tp=1 pp=1 recompute=none", ""},
    {"examples/moe_package", "deepseek-v2", "mbs=1 gbs=256 tp=1 pp=4 ep=8 recompute=none", ""}};

void fill(PublishedRow& row, const std::string& column, std::string text) {
  if (row.cell(column).empty()) row.cells[column] = std::move(text);
}

// Replaces what a cell of a recipe spells without spaces.
std::string spelled(std::string_view value) {
  std::string text(value);
  std::ranges::replace(text, '_', ' ');
  return text;
}

void add_primus_recipe(CompletedRow& completed, const PrimusRecipe& recipe) {
  for (const std::string& word : split_words(recipe.cells, ' ')) {
    const auto [column, value] = split_setting(word);
    if (!completed.row.cell(column).empty()) continue;
    completed.row.cells[std::string(column)] = spelled(value);
    completed.assumptions.push_back(fmt::format("{} {}", column, spelled(value)));
  }
  completed.weak = recipe.weak;
}

void find_primus_recipe(CompletedRow& completed) {
  const std::string source = lower_text(completed.row.cell("source")), model = lower_text(completed.row.cell("model"));
  for (const PrimusRecipe& recipe : k_primus_recipes) {
    if (!mentions(source, recipe.source) || !mentions(model, recipe.model)) continue;
    add_primus_recipe(completed, recipe);
    // "cumulative + VPP5"
    if (const auto chunks = find_in_notes(completed.row, "VPP([2-9])"); !chunks.empty() && recipe.weak.empty())
      fill(completed.row, "vp", chunks[0]);
    return;
  }
}

bool has_cell(const PublishedRow& row, std::initializer_list<const char*> columns) {
  return std::ranges::any_of(columns, [&](const char* column) { return count_cell(row, column).has_value(); });
}

// What GPUs x accumulation / batch leaves for TP x PP x CP / MBS, as whole numbers; 0: it cannot be.
struct OpenSplit {
  int64_t ranks = 0;  // TP x PP x CP
  int64_t micro_batch = 1;
};
OpenSplit open_split(const PublishedRow& row) {
  constexpr int64_t k_largest_micro_batch = 8;
  const auto gpus = count_cell(row, "n_gpus"), batch = count_cell(row, "gbs"), steps = count_cell(row, "ga");
  if (!gpus || !batch || !steps) return {};
  for (int64_t micro = 1; micro <= k_largest_micro_batch; micro *= 2)
    if (const int64_t all = *gpus * *steps * micro; all % *batch == 0) return {all / *batch, micro};
  return {};
}

// Published configurations of MLPerf's 70B fine-tuning and 8B pre-training have no pipeline. On GPUs of 80 GB and less
// the fine-tuning's have up to four tensor-parallel ranks; all else is context parallelism.
void assume_split(CompletedRow& completed, const Machine& machine) {
  constexpr double k_small_memory = 100e9;
  constexpr int64_t k_max_tensor = 4, k_max_ranks = 16;
  PublishedRow& row = completed.row;
  if (has_cell(row, {"tp", "pp", "cp"})) return;
  const std::string model = lower_text(row.cell("model"));
  const bool adapters = mentions(model, "lora"), small = mentions(model, "8b");
  const OpenSplit split = open_split(row);
  if (split.ranks < 1 || split.ranks > k_max_ranks || (!adapters && !small)) {
    completed.missing = "no layout";
    return;
  }
  const int64_t tensor =
      adapters && machine.memory_bytes < k_small_memory ? std::min(k_max_tensor, split.ranks) : int64_t{1};
  const int64_t context = split.ranks / tensor;
  fill(row, "tp", std::to_string(tensor));
  fill(row, "cp", std::to_string(context));
  fill(row, "mbs", std::to_string(split.micro_batch));
  completed.assumptions.push_back(fmt::format("TP{} CP{} MBS{}", tensor, context, split.micro_batch));
}

// With a printed layout the micro-batch follows from batch and accumulation.
void derive_micro_batch(PublishedRow& row) {
  const auto gpus = count_cell(row, "n_gpus"), batch = count_cell(row, "gbs"), steps = count_cell(row, "ga");
  if (!row.cell("mbs").empty() || !gpus || !batch || !steps) return;
  const double ranks = static_cast<double>(*gpus) / static_cast<double>(count_cell(row, "tp").value_or(1)) /
                       static_cast<double>(count_cell(row, "pp").value_or(1)) /
                       static_cast<double>(count_cell(row, "cp").value_or(1));
  const double micro = static_cast<double>(*batch) / ranks / static_cast<double>(*steps);
  if (micro >= 1 && micro <= 64 && micro == static_cast<double>(static_cast<int64_t>(micro)))
    row.cells["mbs"] = std::to_string(static_cast<int64_t>(micro));
}

// Submissions train in FP8 where the GPU can, and from v5.1 on in NVFP4 as well.
void assume_precision(CompletedRow& completed, const Machine& machine, const std::string& round) {
  PublishedRow& row = completed.row;
  if (!row.cell("precision").empty()) return;
  const std::string notes = lower_text(row.cell("notes"));
  const bool either = machine.architecture.starts_with("blackwell") && round >= "v5.1";
  const bool named = mentions(notes, "configuration file");
  if (mentions(notes, "pace suggests nvfp4")) {
    fill(row, "precision", "NVFP4");
  } else if (either && !named && !mentions(lower_text(row.cell("model")), "lora")) {
    completed.missing = "no precision: submissions of its round train in FP8 and in NVFP4";
    return;
  } else {
    fill(row, "precision", machine.peak_8 > 0 ? "FP8" : "BF16");
  }
  completed.assumptions.push_back(row.cell("precision"));
  if (either && !named) completed.weak = "its precision is not published";
}

// All published configurations of the 405B model cut each stage into eight chunks (mlcommons/training_results_v5.0 and
// v5.1).
void assume_chunks(CompletedRow& completed) {
  PublishedRow& row = completed.row;
  if (!row.cell("vp").empty() || row.cell("pp") != "8" || !mentions(lower_text(row.cell("model")), "405b")) return;
  fill(row, "vp", "8");
  completed.assumptions.push_back("VP 8");
}

// Submissions name containers and libraries. On GPUs they train with NeMo, on Megatron-Core, unless they say otherwise.
void name_program(CompletedRow& completed, const std::string& round) {
  const std::string text = lower_text(completed.row.cell("framework"));
  if (mentions(text, "torchtitan")) return;
  for (const std::string_view other : {"maxtext", "jax", "pax", "tinygrad"})
    if (mentions(text, other)) completed.missing = "no such framework in the planner's list";
  if (mentions(text, "deepspeed"))
    completed.missing = "no layout: how its DeepSpeed shares the weights is not published";
  completed.row.cells["framework"] = fmt::format("MLPerf {} NeMo", round);
}

void complete_submission(CompletedRow& completed, const std::string& round) {
  const Machine* machine = find_printed_machine(completed.row.cell("gpu"));
  if (machine == nullptr) return;
  name_program(completed, round);
  if (!completed.missing.empty()) return;
  assume_split(completed, *machine);
  derive_micro_batch(completed.row);
  assume_chunks(completed);
  if (completed.missing.empty()) assume_precision(completed, *machine, round);
  if (completed.row.cell("throughput_unit") == "tokens/s" && completed.row.cell("step_time_s_median").empty())
    completed.weak = "its throughput includes evaluations";
}

// NVIDIA's configurations launch layers as graphs from v4.0 on (LAYER_CUDA_GRAPH), and from v5.0 on Megatron-Core's
// (MCORE_CUDA_GRAPH; mlcommons/training_results_v5.1 NVIDIA/benchmarks/llama2_70b_lora/implementations/nemo). AMD's do
// not.
Graphs graphs_of(const Machine& machine, const std::string& round) {
  if (machine.architecture.starts_with("cdna") || round < "v4.0") return Graphs::none;
  return round < "v5.0" ? Graphs::parts : Graphs::whole;
}

// A round's programs differ by what they were tuned for: its submissions on Hopper repeat the program of v4.1.
std::string release_of(const Machine& machine, const std::string& round) {
  const std::string& architecture = machine.architecture;
  for (const std::string_view group : {"blackwell", "cdna"})
    if (architecture.starts_with(group)) return fmt::format("{}-{}", round, group);
  return fmt::format("{}-{}", round, architecture);
}

// Primus' configurations of dense models leave Megatron-Core's loss unfused (cross_entropy_loss_fusion of
// primus/configs/models/megatron/language_model.yaml at b3d0efd); those of mixtures fuse it after their baseline.
bool has_plain_loss(const Workload& workload, const PublishedRow& row) {
  if (workload.family->id != "megatron_core" || !mentions(lower_text(row.cell("framework")), "primus")) return false;
  return !workload.shape.experts || mentions(lower_text(row.cell("notes")), "baseline,");
}

// Their chunks go down the ranks and up again, so that one rank has the first and the last.
bool has_v_schedule(const PublishedRow& row) { return !find_in_notes(row, "schedule (v-half|v-min|zbv|zbb)").empty(); }

std::string weakness_of_source(const PublishedRow& row) {
  if (mentions(lower_text(row.cell("model")), "(4 layers)")) return "a proxy of four layers";
  const std::string notes = lower_text(row.cell("notes"));
  if (mentions(notes, "preliminary")) return "preliminary, as its source says";
  if (mentions(notes, "personal benchmark")) return "a personal benchmark, untuned";
  if (mentions(notes, "evaluation may be inside")) return "its step time may include evaluations";
  return "";
}

}  // namespace

CompletedRow complete_row(const PublishedRow& printed) {
  CompletedRow completed{printed, {}, "", ""};
  if (has_v_schedule(printed)) completed.missing = "a pipeline schedule that the planner does not simulate";
  if (const auto round = submission_round(printed))
    complete_submission(completed, *round);
  else
    find_primus_recipe(completed);
  if (completed.weak.empty()) completed.weak = weakness_of_source(printed);
  return completed;
}

void read_tuning(PublishedWorkload& read, const PublishedRow& row) {
  Workload& workload = read.workload;
  workload.trains_adapters = read_inputs(row).tuning == TuningKind::adapters;
  const bool narrow = workload.precision == PlanPrecision::fp8 || workload.precision == PlanPrecision::fp4;
  if (narrow && mentions(lower_text(row.cell("notes")), "fp8 attention")) workload.narrow_attention = true;
  workload.plain_loss = has_plain_loss(workload, row);
  if (const auto round = submission_round(row)) {
    workload.release = release_of(read.machine, *round);
    workload.graphs = graphs_of(read.machine, *round);
    // FP8_PARAM_GATHER and FP8_PARAMS of NVIDIA's and AMD's configurations; gradients are summed in 16 bits
    workload.gradient_bytes = k_half_bytes;
    if (workload.precision == PlanPrecision::fp8) workload.updated_bytes = 1;
  }
  workload.layout.delays_weights =
      workload.layout.chunks == 1 && mentions(lower_text(row.cell("notes")), "schedule zero-bubble");
}

}  // namespace tprimat::planner
