#pragma once

#include <cstdint>
#include <optional>

#include "planner/published_workload.h"

// Length, batch and rate of a row of a published table, printed or as they follow from one another.
namespace tprimat::planner {

// What a GPU keeps does not depend on how many micro-batches follow. Without a batch a step's time says nothing.
bool prints_memory_alone(const PublishedRow& row);

// The length that rate, time and batch of a step agree on, or its time, batch and TFLOP/s.
std::optional<int64_t> following_length(const PublishedRow& row, const ModelSpec& shape);
int64_t assume_length(const PublishedRow& row, const PublishedWorkload& read);

// Sequences per step, after length and layout; 0 where none follow.
int64_t read_global_batch(const PublishedRow& row, const Workload& workload);

// Of a row that prints a rate, which then hardly depends on it: one micro-batch, or eight times as many as a pipeline
// has stages.
void assume_global_batch(PublishedWorkload& read, const PublishedRow& row);
int64_t assume_micro_batch(const Workload& workload);

// Tokens per second and GPU.
std::optional<double> printed_rate(const PublishedWorkload& read, const PublishedRow& row, int64_t gpus);

}  // namespace tprimat::planner
