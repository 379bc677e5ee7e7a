#pragma once

#include "compare/comparison.h"

namespace tprimat::results {

// Witnesses that two results hold one measurement although their step times do not lie in one another.

// Two series of step times with what is known of each; the first is not the shorter one.
struct SeriesPair {
  const std::vector<double>&longer, &shorter;
  const SeriesTrace &of_longer, &of_shorter;
  double unit = 1;       // what the shorter must be multiplied by
  double tolerance = 0;  // s; what their roundings leave open
};

// n KL(m/n || p), nats: how unlikely it is that m of n agree where chance lets a share p agree.
double surprise(double agreeing, double all, double p);

// The same values in another order, with values repeated or left out: nine in ten of the shorter one's lie in the
// longer one, by more than 30 nats beyond chance.
bool shares_values(const SeriesPair& pair);

// The same ups and downs with another scale, offset or slight noise: the changes from step to step correlate above
// 0.99, and what the correlation leaves is below 0.05 % of a step, which no two runs repeat. A series that resembles
// itself at some distance (every tenth step slower) shows a pattern that two runs may share, and proves nothing unless
// it agrees within 0.003 %.
bool shares_changes(const SeriesPair& pair);

// The same time stamps at the same steps, as logs of several ranks have them, or one log in means of several steps.
// Stamps in whole seconds need the same losses and related step times besides: jobs that start together may agree in
// them.
bool shares_clock(const RunResult& a, const RunResult& b);

}  // namespace tprimat::results
