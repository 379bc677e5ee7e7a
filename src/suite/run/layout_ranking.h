#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "run/outcome.h"
#include "run/plan_layouts.h"
#include "text/fields.h"

namespace tprimat::suite {

// A planned layout beside what its runs measured.
struct RankedLayout : planner::Layout {
  std::string strategy;
  int64_t predicted_rank = 1, zero_stage = 0;
  double predicted_seconds = 0;                              // of a step
  int64_t runs_measured = 0;                                 // those that completed
  std::optional<int64_t> expert_ranks, expert_tensor_ranks;  // of a sparse model
  std::optional<double> measured_seconds;   // median over these runs of the median of their steady steps
  std::optional<double> spread;             // of these runs: (largest - smallest) / median, from two runs on
  std::optional<double> over_predicted;     // measured / predicted
  std::optional<int64_t> measured_rank;     // 1: the fastest; equal times share a rank
  std::vector<std::string> without_figure;  // runs that did not complete: "run 2 failed: out of memory"
  std::optional<RunStatus> ended_as;        // the first of these

  static constexpr auto fields() {
    using R = RankedLayout;
    return field_list(
        field("predicted_rank", &R::predicted_rank, "1: the planner's first choice; equal times share a rank"),
        field("strategy", &R::strategy, "name of the layout in results"),
        field("tensor_model_parallel_size", &R::tensor, "TP"),
        field("pipeline_model_parallel_size", &R::pipeline, "PP"),
        field("virtual_pipeline_model_parallel_size", &R::chunks, "VP"),
        field("embedding_and_loss_as_layers", &R::ends_as_layers,
              "they count as layers when the pipeline is split into stages"),
        field("data_parallel_size", &R::data, "DP"), field("context_parallel_size", &R::context, "CP"),
        field("expert_model_parallel_size", &R::expert_ranks, "EP; absent: a dense model"),
        field("expert_tensor_parallel_size", &R::expert_tensor_ranks, "ETP; absent: a dense model"),
        field("zero_stage", &R::zero_stage, "ZeRO"), field("micro_batch_size", &R::micro_batch, "MBS, sequences"),
        field("recompute", &R::recompute, "activation recomputation"),
        field("predicted_step_time_seconds", &R::predicted_seconds, "by the planner, before the runs"),
        field("runs_measured", &R::runs_measured, "runs that completed"),
        field("measured_step_time_seconds", &R::measured_seconds, "median over runs of the median steady step"),
        field("spread", &R::spread, "of the runs: (largest - smallest) / median"),
        field("measured_over_predicted", &R::over_predicted, "ratio of the step times"),
        field("measured_rank", &R::measured_rank, "1: the fastest; absent: not measured"),
        field("without_figure", &R::without_figure, "runs that did not complete, and why"));
  }
};

// The planner's ranking of one training's layouts, judged by measurements.
struct LayoutRanking {
  Platform platform = Platform::cpu;
  Framework framework = Framework::native;
  std::string model;
  std::vector<RankedLayout> layouts;          // as planned, fastest first
  std::optional<double> rank_correlation;     // Spearman's, over three or more measured layouts
  std::optional<double> first_choice_behind;  // the first choice's measured time over the best, minus 1
  std::string judgement;                      // a sentence

  static constexpr auto fields() {
    using R = LayoutRanking;
    return field_list(field("platform", &R::platform, "nvd, amd or cpu"),
                      field("framework", &R::framework, "what trained"), field("model", &R::model, "key of the model"),
                      field("layouts", &R::layouts, "in the planner's order, fastest first"),
                      field("rank_correlation", &R::rank_correlation,
                            "Spearman's, of predicted and measured step times; from three measured layouts on"),
                      field("first_choice_behind", &R::first_choice_behind,
                            "measured step time of the planner's first choice over the best, minus 1"),
                      field("judgement", &R::judgement, "a sentence"));
  }
};

LayoutRanking rank_layouts(const LayoutPlan& plan, const std::vector<RunOutcome>& outcomes);

// A title, one row for each layout, why runs have no figure, and the judgement.
std::string render_layout_ranking(const LayoutRanking& ranking);

}  // namespace tprimat::suite
