#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command_line/session.h"
#include "run/profile_window.h"
#include "run/suite_context.h"

namespace tprimat::cli {

// What `tprimat run` and `tprimat profile` are told.
struct RunOptions {
  std::string platform = "auto";
  std::vector<std::string> frameworks, models, strategies;
  int64_t runs = 0, steps = 0;  // 0: as the configuration says
  std::optional<int64_t> profile_steps;
  std::string dataset, output;
  std::optional<std::string> load;
  double time_limit_seconds = 0.0;
  double hang_factor = suite::HangLimits{}.factor, startup_seconds = -1.0;  // negative: as limits_of says
  double cool_down_seconds = -1.0;                                          // as configured
  int64_t retries = 0;
  std::string launcher;   // empty: as the configuration says
  std::string adapt;      // the same
  int64_t nodes = 0;      // the same
  std::string from_plan;  // "top=3": the planner's best layouts; empty: those of strategies
  bool dry_run = false, resume = false;
  bool force = false;                            // start what does not fit into memory too
  std::optional<suite::ProfileRequest> profile;  // profiled runs, and no others
};

// The options of both; those of `run` alone are not among them.
void add_run_options(CommandLine& verb, Session& session, RunOptions& options);

// Plans and runs, or shows the plan. Throws Error.
ExitStatus run_configuration(const Session& session, const RunOptions& options);

}  // namespace tprimat::cli
