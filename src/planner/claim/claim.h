#pragma once

#include <optional>
#include <string>
#include <vector>

#include "claim/neighbours.h"
#include "claim/suspicion.h"
#include "planner/parameters.h"
#include "published/table.h"
#include "result/run_result.h"

namespace tprimat::planner {

// A training rate that someone states.
struct Claim {
  PublishedRow row;                      // settings and figures, in the columns of a published table
  std::optional<ModelSpec> shape;        // of a model that is in no catalogue
  std::optional<Convention> convention;  // by which its TFLOP/s and MFU are counted, where that is stated
  std::optional<Workload> workload;      // of a result, as the planner sees it; else the row is read
};
Claim claim_of_row(const PublishedRow& row);  // its column flop_convention may name the convention

// A result's figures. Throws Error for a result that states too little.
Claim claim_of_result(const RunResult& result, const std::string& path);

// typical     within what is expected, or slower
// record      above all published runs of its kind, and still plausible
// suspicious  a known mistake explains the figure better than a fast training, or figures contradict each other
// impossible  beyond what the GPU reaches, or without the memory for it
enum class ClaimVerdict { typical, record, suspicious, impossible };
constexpr auto enum_table(ClaimVerdict) {
  return std::to_array<std::pair<ClaimVerdict, std::string_view>>({{ClaimVerdict::typical, "typical"},
                                                                   {ClaimVerdict::record, "record"},
                                                                   {ClaimVerdict::suspicious, "suspicious"},
                                                                   {ClaimVerdict::impossible, "impossible"}});
}

struct ConventionLine {
  Convention convention = Convention::full;
  std::string meaning;
  double flops_per_token = 0, tflops_per_gpu = 0, mfu = 0;
  bool counts_model_alone = true;

  static constexpr auto fields() {
    using C = ConventionLine;
    return field_list(field("convention", &C::convention, "name"), field("meaning", &C::meaning, "what it counts"),
                      field("flops_per_token", &C::flops_per_token, "forward and backward"),
                      field("tflops_per_gpu", &C::tflops_per_gpu, "at the claim's rate"),
                      field("mfu", &C::mfu, "the same over the dense peak"),
                      field("counts_model_alone", &C::counts_model_alone,
                            "false of conventions that count more than the model's own FLOPs"));
  }
};

// Tokens/s per GPU, 80 % of such trainings between low and high.
struct ExpectedRate {
  double middle = 0, low = 0, high = 0;
  std::string basis;

  static constexpr auto fields() {
    using E = ExpectedRate;
    return field_list(field("middle", &E::middle, "tokens/s per GPU"),
                      field("low", &E::low, "80 % of such trainings lie between this"),
                      field("high", &E::high, "and this"), field("basis", &E::basis, "what it rests on"));
  }
};

struct NearRun {
  std::string id, model, gpu, source;
  double tokens_per_second_per_gpu = 0, mfu = 0;
  std::vector<std::string> differences;

  static constexpr auto fields() {
    using N = NearRun;
    return field_list(field("id", &N::id, "of the row: tprimat published show ID"),
                      field("model", &N::model, "as published"), field("gpu", &N::gpu, "part"),
                      field("source", &N::source, "of the row"),
                      field("tokens_per_second_per_gpu", &N::tokens_per_second_per_gpu, "published"),
                      field("mfu", &N::mfu, "causal model FLOPs over the dense peak"),
                      field("differences", &N::differences, "of its settings from the claim's"));
  }
};

struct ClaimReport {
  std::optional<int64_t> line;  // of a table
  std::string model, gpu, framework;
  int64_t gpus = 0, sequence_length = 0;
  PlanPrecision precision = PlanPrecision::bf16;
  std::optional<std::string> missing;  // why it is not judged; then there is no verdict
  std::optional<ClaimVerdict> verdict;
  std::string reason;  // of the verdict, in a sentence
  bool slow = false;   // below the expected range
  double tokens_per_second_per_gpu = 0, mfu = 0;
  std::string from;  // figure that gave the rate
  double limit_mfu = 0;
  std::string limit_basis;
  std::vector<ConventionLine> conventions;
  std::optional<ExpectedRate> expected, planned;
  std::optional<std::string> layout;         // that the planner timed
  std::optional<std::string> not_predicted;  // why it timed none
  std::optional<PublishedStanding> standing;
  std::optional<int64_t> rank;  // among the published runs of its kind, 1: faster than all
  std::vector<NearRun> nearest;
  std::vector<Suspicion> suspicions;  // most likely first
  std::vector<std::string> notes;

  static constexpr auto fields() {
    using C = ClaimReport;
    return field_list(field("line", &C::line, "line in the table, from 1; absent: a single claim"),
                      field("model", &C::model, "as stated"), field("gpu", &C::gpu, "part"),
                      field("framework", &C::framework, "as stated; empty: not stated"),
                      field("gpus", &C::gpus, "number of GPUs; 0: not stated"),
                      field("sequence_length", &C::sequence_length, "tokens"),
                      field("precision", &C::precision, "of the matrix products"),
                      field("missing", &C::missing, "why the claim is not judged"),
                      field("verdict", &C::verdict, "typical, record, suspicious or impossible"),
                      field("reason", &C::reason, "of the verdict"),
                      field("slow", &C::slow, "below the expected range"),
                      field("tokens_per_second_per_gpu", &C::tokens_per_second_per_gpu, "that the claim means"),
                      field("mfu", &C::mfu, "causal model FLOPs over the dense peak"),
                      field("from", &C::from, "stated figure that gives the rate"),
                      field("limit_mfu", &C::limit_mfu, "highest MFU that the GPU's matrix products allow"),
                      field("limit_basis", &C::limit_basis, "what the limit rests on"),
                      field("conventions", &C::conventions, "TFLOP/s and MFU by each convention"),
                      field("expected", &C::expected, "by planner and published runs together, tokens/s per GPU"),
                      field("planned", &C::planned, "by the planner alone"),
                      field("layout", &C::layout, "layout behind the planner's figure"),
                      field("not_predicted", &C::not_predicted, "why the planner gives no figure"),
                      field("standing", &C::standing, "against published runs of its kind"),
                      field("rank", &C::rank, "among these; 1: faster than all"),
                      field("nearest", &C::nearest, "published runs with the most similar settings, nearest first"),
                      field("suspicions", &C::suspicions, "mistakes that would explain the figure, most likely first"),
                      field("notes", &C::notes, "what else to know"));
  }
};

// What a claim is held against.
struct ClaimEvidence {
  const std::vector<PublishedRun>& runs;
  const ParameterSet& parameters;
};

// Never throws for what a claim states: where it cannot be judged, `missing` says why.
ClaimReport judge_claim(const Claim& claim, const ClaimEvidence& evidence);

// The runs without the claim's own row and its near copies: those of the same repository, model and GPU.
std::vector<PublishedRun> without_copies(const std::vector<PublishedRun>& runs, const PublishedRow& row);

std::string render_claim(const ClaimReport& report);
std::string render_claims(const std::vector<ClaimReport>& reports);  // one line each, and counts

}  // namespace tprimat::planner
