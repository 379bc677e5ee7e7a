#pragma once

#include <string>

#include "planner/published_workload.h"
#include "published/row_inputs.h"
#include "published/table.h"

namespace tprimat::planner {

// How Megatron-Bridge's authors ran a model on a GPU in some of its releases: one row of recipes.tsv, which names their
// source. Published rows of the same model, GPU, precision and layout were measured so.
struct PublishedRecipe {
  std::string first, last;  // releases: "26.02.01"
  std::string model, gpu, precision;
  TuningKind tuning = TuningKind::none;
  int64_t gpus = 0, global_batch = 0;  // 0: not stated
  Layout layout;                       // as far as a recipe states it
  Graphs graphs = Graphs::none;
  std::optional<Dispatcher> dispatcher;
  bool overlaps_experts = false;
  bool narrow_attention = false;
  std::string recompute;  // "moe_act,layernorm"
  std::string cut;        // "Et*4|(t*4|)*14tmL"
};

// The row with what its recipe says of recomputation, where itself says nothing; the rest goes into its workload. Rows
// without a release, or on real data, follow no recipe.
PublishedRow complete_by_recipe(PublishedWorkload& read, const PublishedRow& row);

// The recipe of that release, or of the nearest one, which has the workload's model, GPU, precision and layout; nothing
// where there is none.
const PublishedRecipe* find_recipe(const PublishedRow& row, const Workload& workload, const Machine& machine,
                                   TuningKind tuning);

// Whether the attention core of the newest recipes with MX scaling of this model, by its key, on this GPU is in FP8.
bool recipes_narrow_attention(const std::string& model, const Machine& machine);

}  // namespace tprimat::planner
