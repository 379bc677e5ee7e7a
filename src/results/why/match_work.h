#pragma once

#include <optional>
#include <string>
#include <vector>

#include "why/ledger.h"
#include "why/work_rows.h"

namespace tprimat::results {

inline constexpr size_t k_no_row = static_cast<size_t>(-1);

// Of the times of a row of each side: what a share adds to the gap, and the part that is of its kind. Of n_A and n_B
// calls, n_B > n_A, the n_A common ones are of one kind, and the further ones of B of another.
struct ShareFactors {
  double a = 0, b = 0;
  double a_part = 0, b_part = 0;  // of all shares of a row they add up to 1
};

// What a row of each side adds to a term: work.b x its time in B - work.a x its time in A. All shares of a row add
// up to 1, so that nothing is lost or counted twice.
struct WorkShare {
  Cause cause = Cause::work;
  size_t a_row = k_no_row, b_row = k_no_row;
  ShareFactors work = {};
  Cause gap_cause = Cause::launch;  // of the short gaps that belong to the rows
  ShareFactors gaps = {};
  std::string what = {};  // names several rows that are no pairs; empty: the rows' own names
};

struct WorkMatch {
  std::vector<WorkShare> shares;
  std::optional<double> micro_batches;  // micro-batches of B over those of A, where the work is cut otherwise
  // Times of B over those of A of the same calls, where all kinds of them differ alike: the processor is another,
  // slower or shared with other programs.
  std::optional<double> uniform_factor;
};

// Pairs work by key; what is left by operation, and products, attention and convolutions by class. A changed number of
// calls n of time t each is shared evenly: (nB - nA) (tA + tB) / 2 is more work, (nA + nB) / 2 (tB - tA) is slower
// work, so that swapped sides give the negative. `micro_batches`: of B over those of A where the settings tell, else
// they are found from the shapes.
WorkMatch match_work(const StepWork& a, const StepWork& b, std::optional<double> micro_batches);

// The term of a class whose calls take another time.
Cause cause_of(logs::KernelClass kernel_class);

}  // namespace tprimat::results
