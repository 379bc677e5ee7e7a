#pragma once

#include <string>

#include "run/outcome.h"
#include "run/progress.h"

namespace tprimat::suite {

// Hears how a suite goes; what a person sees of it is not the suite's business.
class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void run_started(const PlannedRun& run, size_t number, size_t of) = 0;
  virtual void progressed(const Progress& progress) = 0;  // several times a second
  virtual void run_ended(const RunOutcome& outcome) = 0;
  virtual void profile_ended(const ProfileOutcome&) {}
  virtual void noted(const std::string& sentence) = 0;
};

}  // namespace tprimat::suite
