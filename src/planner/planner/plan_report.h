#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/published_best.h"
#include "planner/training_outlook.h"
#include "planner/tuning.h"
#include "text/fields.h"

namespace tprimat::planner {

// One layout as `tprimat plan` shows it.
struct PlanLine : Layout {
  int64_t accumulation = 1;
  std::optional<int64_t> expert_ranks, expert_tensor_ranks;        // of a sparse model
  std::vector<int64_t> layers_of_places;                           // of each chunk, where they are listed
  std::optional<std::string> pipeline_layout;                      // the same as configurations state it
  std::optional<std::vector<RecomputedModule>> recompute_modules;  // of selective recomputation, where they are named
  bool on_frontier = false;
  double step_seconds = 0, tokens_per_second_per_gpu = 0, mfu = 0;
  double memory_bytes = 0;
  std::map<std::string, double> seconds;  // of a step, by kind of work
  std::map<std::string, double> bytes;    // on the GPU that needs most, by kind

  static constexpr auto fields() {
    using P = PlanLine;
    return field_list(
        field("tensor_model_parallel_size", &P::tensor, "TP"),
        field("pipeline_model_parallel_size", &P::pipeline, "PP"), field("virtual_pipeline_size", &P::chunks, "VP"),
        field("embedding_and_loss_as_layers", &P::ends_as_layers,
              "they count as layers when the pipeline is split into stages"),
        field("zero_bubble", &P::delays_weights, "weight gradients fill the pipeline bubble (ZB-H1)"),
        field("pipeline_layout", &P::pipeline_layout,
              "layers of each chunk in Megatron-LM's notation; absent: the framework's rule"),
        field("context_parallel_size", &P::context, "CP"),
        field("expert_model_parallel_size", &P::expert_ranks, "EP, of a mixture of experts"),
        field("expert_tensor_parallel_size", &P::expert_tensor_ranks, "ETP, of a mixture of experts"),
        field("data_parallel_size", &P::data, "DP"), field("micro_batch_size", &P::micro_batch, "MBS, sequences"),
        field("gradient_accumulation_steps", &P::accumulation, "GA"),
        field("sharding", &P::sharding, "state sharded over data-parallel ranks"),
        field("recompute", &P::recompute, "activation recomputation"),
        field("recompute_modules", &P::recompute_modules, "parts of a layer that selective recomputation repeats"),
        field("on_frontier", &P::on_frontier, "on the Pareto frontier: no layout beats it in every figure compared"),
        field("step_seconds", &P::step_seconds, "predicted"),
        field("tokens_per_second_per_gpu", &P::tokens_per_second_per_gpu, "predicted"),
        field("mfu", &P::mfu, "causal model FLOPs, over the dense peak of the precision"),
        field("memory_bytes", &P::memory_bytes, "predicted, on the GPU with the highest use"),
        field("seconds", &P::seconds, "of a step, by component"),
        field("bytes", &P::bytes, "on that GPU, by component"));
  }
};

// A step of the fastest layout where a router chooses the experts, and where each gets the same number of tokens.
struct RoutingEffect {
  Routing planned = Routing::learned;  // that of all other figures
  double load = 1;                     // copies of tokens on the fullest rank over the mean, as learned
  double learned_step_seconds = 0, balanced_step_seconds = 0;
  double flattery() const { return learned_step_seconds / balanced_step_seconds - 1; }

  static constexpr auto fields() {
    using R = RoutingEffect;
    return field_list(field("planned", &R::planned, "routing of all other figures"),
                      field("load", &R::load, "tokens on the fullest rank over the mean, with learned routing"),
                      field("learned_step_seconds", &R::learned_step_seconds, "predicted, where the router chooses"),
                      field("balanced_step_seconds", &R::balanced_step_seconds, "predicted with forced balance"));
  }
};

struct PlanReport {
  std::string model, gpu, framework;
  int64_t gpus = 0, sequence_length = 0, global_batch_size = 0;
  PlanPrecision precision = PlanPrecision::bf16;
  int64_t legal = 0, fitting = 0;
  double memory_bytes = 0;                     // of one GPU
  std::string memory_source;                   // where that was stated; empty: the catalogue
  bool calibrated = true;                      // measurements of this architecture stand behind the parameters
  std::optional<PredictionInterval> interval;  // of step times, where errors of like trainings are known
  std::vector<PlanLine> ranked;                // fastest first
  std::vector<PlanLine> frontier;              // none is both faster and smaller
  std::optional<PlanLine> smallest;
  std::optional<TrainingOutlook> training;  // in the fastest layout
  std::optional<RoutingEffect> routing;     // of the fastest; absent where the load does not matter
  std::optional<PlanTuning> tuning;         // of the fastest, of a mixture of experts
  std::optional<PublishedBest> published_best;
  std::vector<std::string> reasons;  // why the fastest is the fastest
  std::optional<double> efficiency;
  std::optional<int64_t> batch_multiple;  // where none is legal: batches that are multiples of it have legal layouts

  static constexpr auto fields() {
    using P = PlanReport;
    return field_list(
        field("model", &P::model, "name of the model"), field("gpu", &P::gpu, "part"),
        field("framework", &P::framework, "framework family"), field("gpus", &P::gpus, "number of GPUs"),
        field("sequence_length", &P::sequence_length, "tokens"),
        field("global_batch_size", &P::global_batch_size, "sequences per step"),
        field("precision", &P::precision, "of the matrix products"),
        field("legal", &P::legal, "legal layouts for model, batch and GPUs"),
        field("fitting", &P::fitting, "legal layouts that fit into memory"),
        field("memory_bytes", &P::memory_bytes, "of one GPU"),
        field("memory_source", &P::memory_source, "what states it, such as a configuration key; empty: the catalogue"),
        field("calibrated", &P::calibrated, "fitted to measurements of this architecture"),
        field("interval", &P::interval, "80 % interval of the step times, relative to the predicted ones"),
        field("ranked", &P::ranked, "layouts, fastest first"),
        field("frontier", &P::frontier, "layouts on the Pareto frontier of step time and memory"),
        field("smallest", &P::smallest, "layout with the lowest memory use, if none fits"),
        field("training", &P::training, "training all tokens in the fastest layout"),
        field("routing", &P::routing, "learned and balanced routing of experts, in the fastest layout"),
        field("tuning", &P::tuning, "settings beside the layout, of a mixture of experts"),
        field("published_best", &P::published_best, "fastest published run of this model, GPU, number and precision"),
        field("reasons", &P::reasons, "the fastest layout against its neighbours, in sentences"),
        field("efficiency", &P::efficiency, "tokens/s/GPU relative to the smallest number of GPUs"),
        field("batch_multiple", &P::batch_multiple, "batches divisible by it have legal layouts"));
  }
};

// Nothing where a load that is not even costs no time.
std::optional<RoutingEffect> compare_routing(const RankedLayout& plan, const PlanRequest& request,
                                             const ParameterSet& parameters);

PlanLine describe_plan(const RankedLayout& plan, const PlanRequest& request);
PlanReport make_plan_report(const PlanRequest& request, const SearchOutcome& outcome);
std::string render_plan_report(const PlanReport& report);

// "TP 2, PP 4, VP 2, EP 8, DP 8, MBS 1": without the sizes that are 1, but MBS; format_layout() adds sharding and
// recompute.
std::string format_sizes(const PlanLine& line);
std::string format_layout(const PlanLine& line);
std::string name_sharding(Sharding sharding);      // "zero1", "unsharded"
std::string format_further(const PlanLine& line);  // ", full recompute, stages 5+14x4+1": but for sizes and sharding

// "choose a GBS divisible by 13, such as 520"; empty where there is none.
std::string name_legal_batch(const PlanReport& report);

inline constexpr const char* k_never_ends = "failures come faster than restarts complete";

// "one failure per 50 678 GPU-hours, 10 min 00 s to restart"
// "6.249 s to 7.547 s", of the fastest layout's step; empty where no interval is known.
std::string format_interval(const PlanReport& report);
std::string describe_failures(const Goodput& goodput);

std::string format_usd(double usd);                        // "$38.5 M"
std::string format_megawatt_hours(double megawatt_hours);  // "1 230 MWh"
std::string format_days(double days);                      // "54.2 days", below two days hours
std::string format_days(double days, bool in_hours);       // in one unit, whatever they are
bool are_hours(double days);                               // below two days
std::string format_tokens(double tokens);                  // "15T"

}  // namespace tprimat::planner
