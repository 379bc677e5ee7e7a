#include "claim/conventions.h"

namespace tprimat::planner {
namespace {

constexpr double k_adapter_share = 2.0 / 3.0;  // no gradient of frozen weights: 4 of 6 FLOPs

double six(int64_t parameters) { return 6 * static_cast<double>(parameters); }

double flops_of_training(const CountedWork& work, Convention convention) {
  const FlopBreakdown causal = break_down(work.shape, {work.sequence_length, true, 0});
  const ParameterCount count = count_parameters(work.shape);
  const double full = break_down(work.shape, {work.sequence_length, false, 0}).total();
  switch (convention) {
    case Convention::full: return full;
    case Convention::causal: return causal.total();
    case Convention::six_n: return six(count.active());
    case Convention::six_n_matmul: return six(count.matmul_active);
    case Convention::experts_dense: return full + six(count.idle);
    case Convention::six_n_total: return six(count.total());
    case Convention::recompute_selective: return hardware_flops(causal, Recompute::selective);
    case Convention::recompute_full: break;
  }
  return hardware_flops(causal, Recompute::full);
}

}  // namespace

double flops_by(const CountedWork& work, Convention convention) {
  return flops_of_training(work, convention) * (work.trains_adapters ? k_adapter_share : 1);
}

std::vector<CountedFlops> count_conventions(const CountedWork& work) {
  std::vector<CountedFlops> all;
  for (const auto& [convention, name] : enum_table(Convention{})) {
    const bool of_experts = convention == Convention::experts_dense || convention == Convention::six_n_total;
    if (!of_experts || work.shape.is_sparse()) all.push_back({convention, flops_by(work, convention)});
  }
  return all;
}

bool counts_model_alone(Convention convention) { return convention <= Convention::six_n_matmul; }

std::string_view meaning_of(Convention convention) {
  switch (convention) {
    case Convention::full: return "attention to the whole sequence (PaLM)";
    case Convention::causal: return "attention to earlier tokens (Megatron-LM)";
    case Convention::six_n: return "6 x active parameters";
    case Convention::six_n_matmul: return "6 x active weights of matrix products";
    case Convention::experts_dense: return "full, all experts counted";
    case Convention::six_n_total: return "6 x all parameters, experts included";
    case Convention::recompute_selective: return "causal, plus recomputed attention (HFU)";
    case Convention::recompute_full: break;
  }
  return "causal, plus the recomputed forward pass (HFU)";
}

}  // namespace tprimat::planner
