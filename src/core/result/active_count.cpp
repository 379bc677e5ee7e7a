#include "result/active_count.h"

namespace tprimat {

std::optional<double> active_parameters_of(const ModelSpec& shape) {
  if (!shape.experts || !check_model(shape, "").empty()) return std::nullopt;
  return static_cast<double>(count_parameters(shape).active());
}

bool is_active_count(double stated, const ModelSpec& shape) {
  constexpr double k_rounding = 1.12;  // 3.35 billion are printed as 3B
  const auto active = active_parameters_of(shape);
  return active && stated <= *active * k_rounding && *active <= stated * k_rounding;
}

bool counts_active_parameters(const RunResult& run) {
  constexpr double k_near_all = 0.75;  // logs round, and count shared weights twice: see may_be_count_of
  const auto& shape = run.model_info.shape;
  if (!shape || !run.model_info.num_parameters) return false;
  const auto stated = static_cast<double>(*run.model_info.num_parameters);
  if (!is_active_count(stated, *shape)) return false;
  return stated < k_near_all * static_cast<double>(count_parameters(*shape).total());
}

}  // namespace tprimat
