#include "result/metric_readers.h"

#include <algorithm>
#include <cmath>

#include "result/metrics.h"
#include "result/summary.h"

namespace tprimat {
namespace {

using Value = std::optional<Estimate>;

// `amount` / figure, whose bounds swap.
Value divide_by(double amount, const Value& figure) {
  if (!figure || !(figure->value > 0) || !std::isfinite(amount / figure->value)) return std::nullopt;
  Estimate quotient{amount / figure->value, {}, {}};
  if (figure->low && figure->high && *figure->low > 0)
    quotient.low = amount / *figure->high, quotient.high = amount / *figure->low;
  return quotient;
}

Value share_of_device(const RunResult& result, const std::optional<double>& gb) {
  const std::optional<double>& all = result.gpu_info.total_memory_gb;
  if (!gb || !(*gb >= 0) || !all || !(*all > 0) || !(*gb <= *all)) return std::nullopt;  // audit: impossible_memory
  return Estimate{*gb / *all, {}, {}};
}

// On a CPU, the ranks share the machine's memory, so that what one of several holds is no share of a device.
bool shares_memory(const RunResult& result) {
  return result.platform == Platform::cpu && device_count(result).value_or(1) != 1;
}

// A log may begin at step 1000, or with the mean of the first ten.
bool begins_later(const RunResult& result) {
  if (!result.steps) return false;
  const auto& numbers = result.steps->numbers;
  const auto& mean_of = result.steps->mean_of;
  return (numbers && !numbers->empty() && numbers->front() > std::max<int64_t>(1, result.steps->counts_from)) ||
         (mean_of && !mean_of->empty() && mean_of->front() > 1);
}

}  // namespace

std::optional<Estimate> plain(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return Estimate{*value, {}, {}};
}

std::optional<Estimate> read_first_step(const RunResult& result) {
  if (result.step_times.empty() || begins_later(result)) return std::nullopt;
  return plain(result.step_times.front());
}

std::optional<Estimate> read_total_time(const RunResult& result) {
  if (!result.performance_metrics || result.performance_metrics->total_time_seconds <= 0) return std::nullopt;
  return plain(result.performance_metrics->total_time_seconds);
}

std::optional<Estimate> read_expert_load(const RunResult& result) {
  return result.experts ? plain(result.experts->load) : std::nullopt;
}

std::optional<Estimate> read_dropped_share(const RunResult& result) {
  return result.experts ? plain(result.experts->dropped_share) : std::nullopt;
}

std::optional<Estimate> read_aux_loss(const RunResult& result) {
  return result.experts ? plain(result.experts->aux_loss) : std::nullopt;
}

std::optional<Estimate> read_time_to_train(const RunResult& result) {
  const auto& time = result.time_to_train;
  return time && time->counts() ? plain(time->seconds) : std::nullopt;
}

std::optional<Estimate> read_final_loss(const RunResult& result) {
  const size_t window = final_loss_window(result);
  double sum = 0;
  size_t count = 0;
  for (size_t i = result.loss_values.size(); i-- > 0 && count < window;)
    if (std::isfinite(result.loss_values[i])) sum += result.loss_values[i], ++count;
  return count > 0 ? Value(Estimate{sum / static_cast<double>(count), {}, {}}) : std::nullopt;
}

std::optional<Estimate> read_allocated_share(const RunResult& result) {
  return shares_memory(result) ? std::nullopt : share_of_device(result, result.memory_metrics.peak_memory_allocated_gb);
}

std::optional<Estimate> read_reserved_share(const RunResult& result) {
  return shares_memory(result) ? std::nullopt : share_of_device(result, result.memory_metrics.peak_memory_reserved_gb);
}

std::optional<Estimate> read_used_share(const RunResult& result) {
  return share_of_device(result, result.memory_metrics.peak_device_used_gb);
}

std::optional<Estimate> read_tokens_per_wh(const RunResult& result) {
  constexpr double k_joules_per_wh = 3600;
  return divide_by(k_joules_per_wh, result.derived.joules_per_token);
}

std::optional<Estimate> read_tokens_per_usd_hour(const RunResult& result) {
  return divide_by(1e12, result.derived.usd_per_1e12_tokens);
}

std::optional<Estimate> days_for_tokens(const RunResult& result, double tokens) {
  constexpr double k_seconds_per_day = 86400;
  return divide_by(tokens / k_seconds_per_day, result.derived.tokens_per_second);
}

}  // namespace tprimat
