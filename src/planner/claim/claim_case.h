#pragma once

#include <optional>
#include <string>
#include <vector>

#include "claim/claim.h"

namespace tprimat::planner {

// Which figure of a claim gives its rate.
enum class FigureKind { tokens, step_time, teraflops, utilization };

// A claim as it is judged: facts, and one rate.
struct ClaimCase {
  ReadFacts read;
  FigureKind kind = FigureKind::tokens;
  double rate = 0;  // tokens/s per GPU
  Convention convention = Convention::full;
  bool convention_stated = false;
  std::string from;                              // "TFLOP/s per GPU, counted as full"
  std::optional<double> teraflops, utilization;  // as stated; a fraction

  const RunFacts& facts() const { return read.facts; }
  bool is_counted() const { return kind == FigureKind::teraflops || kind == FigureKind::utilization; }
};
ClaimCase read_case(const Claim& claim);

// What is believed of the rate before the claim is looked at.
struct RateBelief {
  double middle = 0;  // tokens/s per GPU
  double spread = 0;  // standard deviation of the logarithm
  double log_off(double rate) const;
  ExpectedRate range(std::string basis) const;
};

// The planner's figure for the stated layout, else for the best one.
struct PlannedRate {
  std::optional<RateBelief> belief;
  std::string layout, basis;
  std::string missing;                   // why there is no belief
  int64_t rows = 0;                      // measured ones behind the belief
  std::optional<double> fp8_speed;       // rate in FP8 over the rate in 16 bits, where both are known
  std::optional<double> smallest_bytes;  // of the layout that needs least memory, where none fits
};
PlannedRate plan_rate(const ReadFacts& read, const ParameterSet& parameters);

// Mistakes whose figure would be nearer to what is believed, most likely first; among them those that contradictions
// between the claim's own figures show. `truth`: the likelihood that the claim is right.
struct Suspected {
  std::vector<Suspicion> all;
  double truth = 1;
};
struct ClaimContext {
  std::optional<RateBelief> belief;
  double share_of_best = 0;         // its MFU over the best published one of its kind; 0: there is none
  std::optional<double> fp8_speed;  // by the planner, rate in FP8 over the rate in 16 bits
  bool agrees = false;              // its tokens/s with its own TFLOP/s or MFU
};
Suspected suspect(const ClaimCase& claim, const ClaimContext& context);
std::vector<Suspicion> find_contradictions(const ClaimCase& claim, const PublishedRow& row);

// Whether tokens/s and TFLOP/s or MFU stand beside each other, and each follows from the other as the model's FLOPs.
bool figures_agree(const ClaimCase& claim);

// The upper bound of rates at which a claim is too slow to be believed.
double least_believed(const RateBelief& belief);

// Highest MFU, causal: what the GPU's matrix products reach at best.
struct MfuLimit {
  double mfu = 1;
  std::string basis;
};
MfuLimit limit_of(const RunFacts& facts);

}  // namespace tprimat::planner
