#include "nn/op_clock.h"

namespace tprimat {

void OpClock::add(std::string_view name, const OpTotal& total) {
  auto found = totals_.find(name);
  if (found == totals_.end()) found = totals_.emplace(std::string(name), OpTotal{}).first;
  OpTotal& sum = found->second;
  sum.calls += total.calls;
  sum.seconds += total.seconds;
  sum.flops += total.flops;
  sum.bytes += total.bytes;
}

}  // namespace tprimat
