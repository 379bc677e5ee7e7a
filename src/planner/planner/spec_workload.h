#pragma once

#include <optional>
#include <string>

#include "planner/workload.h"

namespace tprimat::planner {

// A training of this program's own specification as the planner sees it.
struct SpecWorkload {
  Workload workload;
  std::string missing;  // why the planner says nothing of it; empty where it does
  std::string untimed;  // why it says nothing of the step time; empty where it does
};
SpecWorkload workload_of(const TrainSpec& spec, Framework framework, Platform platform);

// The specification with the layout, batch, recomputation and sharding of `layout`. Stated layers of each chunk stay
// where PP and VP do, and what selective recomputation repeats stays with it.
TrainSpec with_layout(TrainSpec spec, const Layout& layout);

// The same, with the workload's explicit cut and what it repeats, where it has them.
TrainSpec with_layout(TrainSpec spec, const Workload& workload);

// The machine behind a device's name as drivers and configurations spell it; nothing where its memory says that it is
// another part than the list's.
std::optional<Machine> machine_of_device(const std::string& name, std::optional<double> memory_gb);

}  // namespace tprimat::planner
