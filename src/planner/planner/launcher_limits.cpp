#include "planner/launcher_limits.h"

#include "text/enum_names.h"

namespace tprimat::planner {

void keep_to_launcher(PlanRequest& request, const std::string& framework) {
  const auto launched = parse_enum<Framework>(framework);
  if (!launched) return;
  switch (*launched) {
    case Framework::tran: request.most_sharding = Sharding::none; [[fallthrough]];
    case Framework::fsdp:
    case Framework::deep: request.data_parallel_only = true; break;
    case Framework::prim: request.equal_stages = true; [[fallthrough]];
    case Framework::nemo: request.most_sharding = Sharding::optimizer; break;
    case Framework::mega:
    case Framework::mgds:
    case Framework::native: break;
  }
}

}  // namespace tprimat::planner
