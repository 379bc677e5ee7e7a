#include <algorithm>

#include "planner/parameters.h"

namespace tprimat::planner {

NativeRates resolve_native_rates(const ParameterSet& p, const Machine& machine, const Workload& workload) {
  constexpr std::string_view k_scope = "native";
  const bool wide = workload.precision == PlanPrecision::fp32;
  const auto own = [&](std::string_view key) {
    const PlanParameter* of_machine = p.find_own(key, machine);
    return of_machine != nullptr ? of_machine->value : p.scoped(key, k_scope, 1);
  };
  const double cores = static_cast<double>(std::max<int64_t>(1, machine.cores));
  const double peak = machine.peak(workload.precision) / cores, memory = machine.memory_bandwidth / cores;
  NativeRates rates;
  const bool wide_products = wide || machine.widens;
  rates.product = peak * own(wide_products ? "product_32" : "product_16");
  rates.saturation = own(wide_products ? "saturation_32" : "saturation_16");
  rates.attention = peak * own(wide_products ? "attention_32" : "attention_16");
  rates.softmax_seconds = own("softmax_bytes") / memory;
  rates.element_seconds = own(wide ? "element_bytes_32" : "element_bytes_16") / memory;
  rates.score_seconds = own("loss_bytes") / memory;
  rates.update_seconds = own("update_bytes") / memory;
  rates.split = own("split");
  rates.call = own("call");
  rates.thread_call = own("thread_call");
  rates.copy_seconds = own("copy_bytes") / memory;
  if (machine.measured.link && p.find_own("copy_bytes", machine) == nullptr)
    rates.copy_seconds = 1 / *machine.measured.link;
  rates.network = machine.network_bandwidth;
  rates.message = own("message");
  rates.turn = own("turn");
  rates.crowd = own("crowd");
  rates.cached_bytes = own("cached_bytes");
  rates.step_start = own("step_start");
  rates.scale = own("scale");
  return rates;
}

}  // namespace tprimat::planner
