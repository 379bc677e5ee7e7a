#pragma once

#include <optional>
#include <string>
#include <vector>

#include "claim/claim.h"
#include "command_line/options.h"
#include "config/experiment.h"

namespace tprimat::cli {

// The options of `tprimat claim`, as written.
struct ClaimOptions {
  std::string model;  // or a result's file
  std::vector<std::string> tables, published;
  bool unseen = false;
  std::string gpu, precision = "bf16", framework, routing, recompute, convention;
  std::optional<int64_t> gpus, sequence_length, global_batch, micro_batch;
  std::optional<int64_t> tensor, pipeline, chunks, context, expert;
  std::optional<double> rate_per_gpu, rate, step_seconds, mfu_percent, teraflops;
  bool adapters = false;
};

void add_claim_options(CommandLine& verb, ClaimOptions& options);

// The settings and figures as a row of a published table. Throws Error.
planner::Claim read_stated_claim(const ClaimOptions& options, const suite::Experiment& experiment);

// Throws Error where settings stand beside a result, which states its own.
void require_no_settings(const ClaimOptions& options);

}  // namespace tprimat::cli
