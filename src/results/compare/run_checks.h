#pragma once

#include "compare/audit.h"

namespace tprimat::results {

// What the rules about one participant look for: the figures that show it, or nothing where all is well.
using Figures = std::optional<Proof>;

Figures check_status(const Contender& c);
Figures check_impossible(const Contender& c);
Figures check_idle_optimizer(const Contender& c);
Figures check_adapters(const Contender& c);
Figures check_unheard_of_mfu(const Contender& c);
Figures check_rounding(const Contender& c);
Figures check_constant_times(const Contender& c);
Figures check_drift(const Contender& c);
Figures check_device_counts(const Contender& c);
Figures check_collapse(const Contender& c);
Figures check_guessing(const Contender& c);
Figures check_divergence(const Contender& c);
Figures check_steady(const Contender& c);
Figures check_disturbance(const Contender& c);
Figures check_throttling(const Contender& c);
Figures check_repetitions(const Contender& c);
Figures check_copies(const Contender& c);
Figures check_few_steps(const Contender& c);
Figures check_few_runs(const Contender& c);
Figures check_clock(const Contender& c);
Figures check_reported(const Contender& c);  // what the framework prints denies the speed

}  // namespace tprimat::results
