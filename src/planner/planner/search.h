#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/interval.h"
#include "planner/memory.h"
#include "planner/step_time.h"

namespace tprimat::planner {

// How FP8 products are scaled: one figure per tensor, per row, or per block of 32 (MX).
enum class Recipe { tensorwise, rowwise, mx };
constexpr auto enum_table(Recipe) {
  return std::to_array<std::pair<Recipe, std::string_view>>(
      {{Recipe::tensorwise, "tensorwise"}, {Recipe::rowwise, "rowwise"}, {Recipe::mx, "mxfp8"}});
}

// What is given; the layout is sought.
struct PlanRequest {
  ModelSpec shape;
  int64_t sequence_length = 0;
  int64_t global_batch = 0;  // sequences per step
  int64_t gpus = 0;
  Machine machine;
  const Family* family = nullptr;
  PlanPrecision precision = PlanPrecision::bf16;
  double usable_memory = 0.94;  // share of the GPU's memory that a training may fill
  // Less than the program can do, for a launcher that uses less of it.
  bool data_parallel_only = false;
  Sharding most_sharding = Sharding::weights;
  bool equal_stages = false;      // embedding and loss cannot count as layers
  bool torchtitan_rules = false;  // DP x CP above 1 beside TP and PP, and a micro-batch for each stage
  bool zero_bubble = false;       // gradients of weights fill the pipeline's waiting, where it is not interleaved
  // As in Workload.
  bool keeps_masters = true, repeats_core = false, trains_adapters = false;
  double moment_bytes = 4, gradient_bytes = 0;
  Offload offload = Offload::none;
  Recipe recipe = Recipe::tensorwise;  // of FP8
  // Of a sparse model.
  std::optional<Routing> routing = {};
  std::optional<Dispatcher> dispatcher = {};
  double expert_load = 0;  // 0: not stated
  Graphs graphs = Graphs::none;
  bool overlaps_experts = false;  // in the layouts that can
  bool narrow_attention = false;
  bool tuned = false;  // its settings are those of published recipes (planner/tuning.h)

  bool scales_tensors() const { return precision == PlanPrecision::fp8 && recipe == Recipe::tensorwise; }
  // `recompute` selective repeats some modules of a layer (planner/recomputed_share.h).
  bool selects_modules() const {
    return shape.is_sparse() && family->selects_modules && (shape.latent_attention || !scales_tensors());
  }
};

struct RankedLayout {
  Workload workload;
  StepTime time;
  MemoryEstimate memory;
};

struct SearchOutcome {
  int64_t legal = 0;                     // layouts that the model, the batch and the GPUs allow
  int64_t fitting = 0;                   // of those, that fit into memory
  std::vector<RankedLayout> ranked;      // fastest first, at most `most`
  std::vector<RankedLayout> frontier;    // no other fitting layout is both faster and smaller; fastest first
  std::optional<RankedLayout> smallest;  // that needs least memory, where none fits
  bool calibrated = false;               // measurements stand behind the parameters (rests_on_measurements)
  PredictionInterval interval;           // of the step times of `ranked`
};

// Every layout TP x PP x VP x CP x DP x EP x ETP x MBS x recompute x sharding that the program can do and that is
// legal: TP divides heads, key heads, inner width and a rank's part of the sequence, and stays within a domain of fast
// links; PP x VP divides the layers, or where the program can do it the layers with embedding and loss among them; CP
// halves the sequence evenly; DP x MBS divides the batch; and an interleaved pipeline is filled in whole rounds (arXiv
// 2104.04473, section 2.2.2). Where the program takes a list of each chunk's layers, cuts that do not divide are
// balanced by weight (planner/stage_cuts.h). EP divides the experts and ETP, 1 or TP, an expert's width; EP x ETP
// divides TP x CP x DP.
SearchOutcome search_layouts(const PlanRequest& request, const ParameterSet& parameters, size_t most);

// For questions about layouts that a search did not choose: all legal ones, each timed where it matters.
class LayoutSurvey {
 public:
  using Accepts = std::function<bool(const Layout&)>;
  LayoutSurvey(const PlanRequest& request, const ParameterSet& parameters);  // which must outlive it
  ~LayoutSurvey();

  std::optional<RankedLayout> find_fastest(const Accepts& accepts);  // of those that fit
  // Of those that do not fit, those that would take less than that; fastest first.
  std::vector<RankedLayout> list_excluded(double seconds, const Accepts& accepts);

 private:
  struct Layouts;
  std::unique_ptr<Layouts> layouts_;
};

// Where --framework names one that `tprimat run` starts: only layouts that its launcher takes (src/suite/launch). Other
// programs keep all that they can do.
void keep_to_launcher(PlanRequest& request, const std::string& framework);

}  // namespace tprimat::planner
