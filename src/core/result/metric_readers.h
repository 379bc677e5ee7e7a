#pragma once

#include <optional>

#include "result/run_result.h"

// Readers of the metrics that are more than a look-up. Each figure is absent where an input is unknown.
namespace tprimat {

std::optional<Estimate> plain(const std::optional<double>& value);  // without an interval; absent unless finite

std::optional<Estimate> read_first_step(const RunResult& result);  // absent where the log begins later
std::optional<Estimate> read_total_time(const RunResult& result);
std::optional<Estimate> read_expert_load(const RunResult& result);
std::optional<Estimate> read_dropped_share(const RunResult& result);
std::optional<Estimate> read_aux_loss(const RunResult& result);
std::optional<Estimate> read_time_to_train(const RunResult& result);  // an aborted run did not reach its target
std::optional<Estimate> read_final_loss(const RunResult& result);     // the loss of one step is noisy

// Peak memory of one kind / memory of one device.
std::optional<Estimate> read_allocated_share(const RunResult& result);
std::optional<Estimate> read_reserved_share(const RunResult& result);
std::optional<Estimate> read_used_share(const RunResult& result);

std::optional<Estimate> read_tokens_per_wh(const RunResult& result);

// Tokens per hour / USD per hour.
std::optional<Estimate> read_tokens_per_usd_hour(const RunResult& result);

std::optional<Estimate> days_for_tokens(const RunResult& result, double tokens);

// Days for so many 1e12 tokens.
template <int trillions>
std::optional<Estimate> read_days(const RunResult& result) {
  return days_for_tokens(result, trillions * 1e12);
}

}  // namespace tprimat
