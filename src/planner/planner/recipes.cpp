#include "planner/recipes.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "planner/usual_settings.h"
#include "spec/tsv_rows.h"

namespace tprimat::planner {
namespace embedded {
extern const std::string_view recipes_tsv;
}

namespace {

int64_t count_of(const TsvRow& row, std::string_view column) {
  const std::string& cell = row.find(column)->second;
  return cell.empty() ? 0 : static_cast<int64_t>(parse_figure(cell));
}

TuningKind parse_task(const std::string& task) {
  if (task == "pretrain") return TuningKind::none;
  CHECK(task == "sft" || task == "lora" || task == "peft");
  return task == "sft" ? TuningKind::whole : TuningKind::adapters;
}

Graphs parse_graphs(const std::string& word) {
  if (word.empty()) return Graphs::none;
  CHECK(word == "parts" || word == "whole");
  return word == "parts" ? Graphs::parts : Graphs::whole;
}

PublishedRecipe parse_recipe(const TsvRow& row) {
  PublishedRecipe recipe;
  recipe.first = row.at("first"), recipe.last = row.at("last");
  recipe.model = fold_name(row.at("model")), recipe.gpu = row.at("gpu"), recipe.precision = row.at("precision");
  recipe.tuning = parse_task(row.at("task"));
  recipe.gpus = count_of(row, "gpus"), recipe.global_batch = count_of(row, "gbs");
  Layout& layout = recipe.layout;
  layout.tensor = count_of(row, "tp"), layout.pipeline = count_of(row, "pp"), layout.chunks = count_of(row, "vp");
  layout.context = count_of(row, "cp"), layout.expert = count_of(row, "ep"), layout.micro_batch = count_of(row, "mbs");
  recipe.graphs = parse_graphs(row.at("graphs"));
  if (!row.at("dispatcher").empty()) recipe.dispatcher = parse_enum<Dispatcher>(row.at("dispatcher"));
  recipe.overlaps_experts = row.at("overlap") == "yes";
  recipe.narrow_attention = row.at("attention") == "fp8";
  recipe.recompute = row.at("recompute"), recipe.cut = row.at("cut");
  return recipe;
}

const std::vector<PublishedRecipe>& recipes() {
  static const std::vector<PublishedRecipe> loaded = [] {
    std::vector<PublishedRecipe> all;
    for (const TsvRow& row : parse_tsv_rows(embedded::recipes_tsv)) all.push_back(parse_recipe(row));
    return all;
  }();
  return loaded;
}

// 0: it holds for the release; 1: for later ones, 2: for earlier ones.
int release_steps(const std::string& release, const PublishedRecipe& recipe) {
  const int64_t number = release_number(release);
  if (number < release_number(recipe.first)) return 1;
  return number > release_number(recipe.last) ? 2 : 0;
}

// How well a recipe's precision is the row's; 0: not at all.
int precision_score(const PublishedRow& row, const Workload& workload, const std::string& recipe) {
  if (workload.precision == PlanPrecision::fp4) return recipe == "nvfp4" ? 2 : 0;
  if (workload.precision != PlanPrecision::fp8) return recipe == "bf16" ? 2 : 0;
  if (!recipe.starts_with("fp8")) return 0;
  if (workload.scaled_by_block) return recipe == "fp8_mx" ? 2 : 0;
  const bool blocks = mentions(lower_text(row.cell("precision")), "block");
  return recipe == (blocks ? "fp8_sc" : "fp8_cs") ? 2 : recipe == "fp8_mx" ? 0 : 1;
}

// Figures of the layout that agree; -1: it is another layout.
int layout_score(const Workload& workload, const PublishedRecipe& recipe) {
  const Layout &l = workload.layout, &r = recipe.layout;
  if (l.tensor != r.tensor || l.pipeline != r.pipeline || l.context != r.context || l.expert != r.expert) return -1;
  const bool same_size = recipe.gpus == l.num_gpus(), same_batch = recipe.global_batch == workload.global_batch;
  return (same_batch ? 3 : 0) + (l.micro_batch == r.micro_batch ? 2 : 0) + (l.chunks == r.chunks ? 1 : 0) +
         (same_size ? 2 : 0);
}

}  // namespace

PublishedRow complete_by_recipe(PublishedWorkload& read, const PublishedRow& row) {
  PublishedRow complete = row;
  Workload& workload = read.workload;
  if (workload.release.empty() || workload.routing == Routing::learned) return complete;
  const PublishedRecipe* recipe = find_recipe(row, workload, read.machine, read_inputs(row).tuning);
  if (recipe == nullptr) return complete;
  if (workload.graphs == Graphs::none) workload.graphs = recipe->graphs;
  if (!workload.dispatcher && workload.shape.experts)
    workload.dispatcher = recipe->dispatcher.value_or(Dispatcher::alltoall);
  workload.overlaps_experts = workload.overlaps_experts || recipe->overlaps_experts;
  workload.narrow_attention = workload.narrow_attention || recipe->narrow_attention;
  if (row.cell("recompute").empty() && !recipe->recompute.empty()) {
    const bool layers = recipe->recompute.ends_with(" layers");
    complete.cells["recompute"] = (layers ? "full " : "selective: ") + recipe->recompute;
  }
  return complete;
}

const PublishedRecipe* find_recipe(const PublishedRow& row, const Workload& workload, const Machine& machine,
                                   TuningKind tuning) {
  const std::string model = fold_name(row.cell("model").substr(0, 200));
  const std::string gpu = machine.id.substr(0, machine.id.find('-'));
  const PublishedRecipe* best = nullptr;
  std::array<int, 3> most{};
  for (const PublishedRecipe& each : recipes()) {
    if (each.gpu != gpu || each.tuning != tuning || model.find(each.model) == std::string::npos) continue;
    const int precision = precision_score(row, workload, each.precision), layout = layout_score(workload, each);
    if (precision == 0 || layout < 0) continue;
    const std::array<int, 3> score{3 - release_steps(workload.release, each), layout, precision};
    if (best == nullptr || score > most) best = &each, most = score;
  }
  return best;
}

bool recipes_narrow_attention(const std::string& model, const Machine& machine) {
  const std::string name = fold_name(model), gpu = machine.id.substr(0, machine.id.find('-'));
  const PublishedRecipe* newest = nullptr;
  for (const PublishedRecipe& each : recipes()) {
    if (each.model != name || each.gpu != gpu || each.precision != "fp8_mx" || each.tuning != TuningKind::none)
      continue;
    if (newest == nullptr || release_number(newest->last) <= release_number(each.last)) newest = &each;
  }
  return newest != nullptr && newest->narrow_attention;
}

}  // namespace tprimat::planner
