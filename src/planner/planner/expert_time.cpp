#include "planner/expert_time.h"

#include <algorithm>
#include <cmath>

namespace tprimat::planner {
namespace {

double number(int64_t value) { return static_cast<double>(value); }

// What a rank's experts see of a micro-batch.
struct RoutedTokens {
  double tokens = 0;  // that the rank sends
  double copies = 0;  // that the fullest rank takes
  double hidden = 0;  // width of a copy
  double inner = 0;   // width of an expert on one rank
  double local = 0;   // experts of the rank
};

RoutedTokens routed_tokens(const Workload& workload, const Rates& rates) {
  const Layout& l = workload.layout;
  const Experts& experts = *workload.shape.experts;
  RoutedTokens routed;
  const double split = number(l.context) * (l.sequence_parallel ? number(l.tensor) : 1);
  routed.tokens = number(l.micro_batch * workload.sequence_length) / split;
  routed.copies = routed.tokens * number(experts.per_token) * felt_load(workload, rates);
  routed.hidden = number(experts.latent_size.value_or(workload.shape.hidden_size));
  routed.inner = number(experts.ffn_hidden_size) / number(l.expert_tensor);
  routed.local = std::max(1.0, number(experts.count) / number(l.expert));
  return routed;
}

// The rows of an expert are a mean over experts: its products take what lies between those of the whole tiles on both
// sides, at least of one, so that nothing leaps where the mean happens to fill its tiles.
template <class Time>
Phases between_tiles(double rows, const Time& time) {
  constexpr double k_tile = 128;
  const double below = std::max(1.0, std::floor(rows / k_tile)) * k_tile;
  const double share = std::clamp((rows - below) / k_tile, 0.0, 1.0);
  return time(below) * (1 - share) + time(below + k_tile) * share;
}

Phases time_grouped(const Workload& workload, const Rates& r, const RoutedTokens& routed) {
  ProductRate rate = r.low();
  rate.flops_per_second *= r.grouped, rate.saturation *= r.grouped_saturation;
  const double gates = workload.shape.mlp == MlpKind::swiglu ? 2 : 1;
  const double rows = routed.copies * number(workload.layout.expert_tensor) / routed.local;
  const Phases one = between_tiles(rows, [&](double whole) {
    return time_linear(workload, whole, gates * routed.inner, routed.hidden, rate) +
           time_linear(workload, whole, routed.hidden, routed.inner, rate);
  });
  return one * routed.local;
}

// Router, and the two products about experts that work at a width of their own.
Phases time_router(const Workload& workload, const Rates& r, const RoutedTokens& routed) {
  const Experts& experts = *workload.shape.experts;
  const double hidden = number(workload.shape.hidden_size);
  const ProductRate plain{r.product_16, r.saturation_16, r.misaligned};
  Phases sum = time_linear(workload, routed.tokens, number(experts.count), hidden, plain);
  if (!experts.latent_size) return sum;
  return sum + time_linear(workload, routed.tokens, routed.hidden, hidden, r.low()) +
         time_linear(workload, routed.tokens, hidden, routed.hidden, r.low());
}

// Copies are permuted, activated, weighted and summed; FP8 converts their inputs and inner values too.
Phases time_permutation(const Workload& workload, const Rates& r, const RoutedTokens& routed) {
  const double copies = routed.copies * number(workload.layout.expert_tensor);
  const double matrices = workload.shape.mlp == MlpKind::swiglu ? 3 : 2;
  const double forward =
      k_half_bytes * copies * (r.routed_bytes * routed.hidden + matrices * routed.inner * r.inner_bytes) / r.memory;
  Phases phases{forward, 2 * forward};
  if (workload.precision != PlanPrecision::fp8 && workload.precision != PlanPrecision::fp4) return phases;
  const double cast = copies * r.cast_bytes / r.memory * (routed.hidden + routed.inner);
  return phases + Phases{cast, 2 * cast};
}

bool is_fused(const Workload& workload) {
  return workload.dispatcher == Dispatcher::deepep || workload.dispatcher == Dispatcher::hybridep;
}

// Domains of another that a token's experts lie in, on average.
double other_domains(const Experts& experts, double domains) {
  const double chosen = (domains - 1) * (1 - std::pow(1 - 1 / domains, number(experts.per_token)));
  return experts.groups > 1 ? std::min(chosen, number(experts.groups_per_token)) : chosen;
}

// One exchange, there or back.
double time_exchange(const Workload& workload, const Machine& machine, const Rates& r, const RoutedTokens& routed) {
  const Layout& l = workload.layout;
  const double ranks = number(l.expert);
  if (ranks <= 1) return 0;
  const double inside = std::clamp(number(machine.gpus_per_domain / l.expert_tensor), 1.0, ranks);
  const double domains = std::ceil(ranks / inside), bytes = k_half_bytes * routed.hidden;
  if (workload.dispatcher == Dispatcher::allgather) {
    const double gathered = bytes * routed.tokens * (ranks - 1);
    return gathered / (domains > 1 ? r.token_network : r.token_link);
  }
  const bool fused = is_fused(workload);
  const double load = routed.copies / (routed.tokens * number(workload.shape.experts->per_token));
  const double near = bytes * routed.copies * (inside - 1) / (fused ? inside : ranks) / r.token_link;
  if (domains <= 1) return near;
  const double far = fused ? routed.tokens * load * other_domains(*workload.shape.experts, domains)
                           : routed.copies * (ranks - inside) / ranks;
  const double network = bytes * far / r.token_network;
  return fused ? std::max(near, network) : near + network;
}

// The ETP ranks of an expert gather its copies, and scatter the sums.
double time_expert_tensor(const Workload& workload, const Rates& r, const RoutedTokens& routed) {
  const double ranks = number(workload.layout.expert_tensor);
  return ranks <= 1 ? 0 : k_half_bytes * routed.copies * routed.hidden * (ranks - 1) / r.link;
}

// The GPU waits where kernels take less time than launching them; a layer has both, so the step from one to the other
// is smooth.
double wait_for_launches(double computed, double launches) {
  constexpr double k_power = 1.5;
  return std::pow(std::pow(computed, k_power) + std::pow(launches, k_power), 1 / k_power) - computed;
}

// Exchanges of one micro-batch hide behind the computing of another, but for what lies before and after it.
double felt_exchange(double exchange, double computed, const Rates& rates) {
  if (rates.expert_overlap <= 0) return exchange;
  const double hidden = exchange * rates.expert_overlap;
  return exchange - hidden + std::max(0.0, hidden - computed);
}

}  // namespace

double felt_load(const Workload& workload, const Rates& rates) {
  const double ranks = number(std::max<int64_t>(1, workload.layout.expert));
  double load = std::max(1.0, workload.expert_load);
  if (workload.expert_load == 0 && workload.routing == Routing::learned)
    load = 1 + rates.learned_load * std::log2(ranks) / 3;
  load = std::min(load, ranks);
  const auto& capacity = workload.shape.experts->capacity_factor;
  return capacity ? std::min(load, *capacity) : load;
}

void add_experts(LayerTime& layer, const Workload& workload, const Machine& machine, const Rates& rates) {
  const RoutedTokens routed = routed_tokens(workload, rates);
  layer.products = layer.products + time_grouped(workload, rates, routed) + time_router(workload, rates, routed);
  layer.elementwise = layer.elementwise + time_permutation(workload, rates, routed);
  const Phases alone = layer.total();
  const double felt =
      felt_exchange(2 * time_exchange(workload, machine, rates, routed), (alone.forward + alone.backward) / 2, rates);
  const double exchange = felt / 2 + time_expert_tensor(workload, rates, routed);
  layer.experts = {2 * exchange, 2 * exchange};
  const Phases computed = layer.total();
  const double launches = rates.expert_launch + routed.local * rates.cast_launch;
  layer.elementwise.forward += wait_for_launches(computed.forward, launches);
  layer.elementwise.backward += wait_for_launches(computed.backward, 2 * launches);
}

}  // namespace tprimat::planner
