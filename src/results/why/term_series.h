#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stats/mean_estimate.h"
#include "why/ledger.h"
#include "why/match_work.h"
#include "why/side.h"

namespace tprimat::results {

// A term while it is added up: its value is the mean of b over the steps of B less the mean of a.
struct TermSeries {
  std::vector<double> a, b;  // s of each step
  std::vector<LedgerDetail> details;
  double a_seconds = 0, b_seconds = 0;

  double value() const;
};

// One per cause. Together they are the difference of the sides' typical steps.
std::vector<TermSeries> add_up_terms(const Side& a, const Side& b, const WorkMatch& match);

// Mean of a quantity of each step: of a dozen steps as a series that may remember, of fewer as independent values;
// nothing for one.
std::optional<MeanEstimate> estimate_steps(const std::vector<double>& values);

// 95 % interval of the difference of two means, from few steps too; nothing where a side has but one.
std::optional<Interval> interval_of(const TermSeries& series);

// For ledgers of sums alone: a term for every cause, and what both sides spend on a part of one.
void add_empty_terms(Ledger& ledger);
void add_part(LedgerTerm& term, const std::string& what, double a_seconds, double b_seconds);

// What the other terms leave is not explained; rounding alone leaves nothing.
void close_ledger(Ledger& ledger);

// Joins equal ones, orders by size, keeps the twenty largest.
std::vector<LedgerDetail> largest_details(std::vector<LedgerDetail> details);

}  // namespace tprimat::results
