#pragma once

#include <optional>
#include <string>
#include <vector>

#include "claim/published_run.h"
#include "result/run_result.h"

namespace tprimat::planner {

// A published run beside a training that someone states.
struct Neighbour {
  const PublishedRun* run = nullptr;
  double spread = 0;                     // standard deviation that we expect of the logarithm of their MFUs' ratio
  std::vector<std::string> differences;  // of the published run's settings: "64 GPUs instead of 8"
};

// Nearest first; without runs that are too unlike to say anything.
std::vector<Neighbour> find_neighbours(const RunFacts& facts, const std::vector<PublishedRun>& runs);

// What the nearest published runs let us expect of the MFU (causal).
struct MfuBelief {
  double middle = 0;  // MFU
  double spread = 0;  // standard deviation of its logarithm
  int64_t rows = 0;
};
std::optional<MfuBelief> believe_neighbours(const std::vector<Neighbour>& nearest);

// The same GPU, precision and kind of training (experts or none; pre-training, fine-tuning or adapters; whole models or
// proxies of fewer layers), of like size: within a factor of 2.5, or where that leaves fewer than three runs, of any
// size.
std::vector<const PublishedRun*> runs_of_kind(const RunFacts& facts, const std::vector<PublishedRun>& runs);

// How a run stands among the published runs of its kind.
struct PublishedStanding {
  double mfu = 0;       // of the run, causal, over the dense peak
  double best_mfu = 0;  // of the published runs
  double share = 0;     // mfu / best_mfu
  int64_t rows = 0;     // published runs of the kind
  std::string best_id;

  static constexpr auto fields() {
    using P = PublishedStanding;
    return field_list(field("mfu", &P::mfu, "of the run: causal model FLOPs over the dense peak"),
                      field("best_mfu", &P::best_mfu, "best of the published runs of its kind, counted alike"),
                      field("share", &P::share, "the run's MFU / the best"),
                      field("rows", &P::rows, "published runs of the same GPU, precision and kind, of like size"),
                      field("best_id", &P::best_id, "the best one's row: tprimat published show ID"));
  }
};
std::optional<PublishedStanding> standing_of(const RunFacts& facts, double tokens_per_second_per_gpu,
                                             const std::vector<PublishedRun>& runs);

// The same of a result, against the built-in tables. Nothing for a processor, for a GPU without published runs of this
// kind and for a run without rate, shape or precision.
std::optional<PublishedStanding> standing_of(const RunResult& result);
std::optional<PublishedStanding> standing_of(const RunResult& result, double tokens_per_second_per_gpu);

// "38.1 % MFU: 70 % of what the best of 12 published runs of this kind reach"
std::string describe_standing(const PublishedStanding& standing);

}  // namespace tprimat::planner
