#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/search.h"
#include "text/fields.h"

namespace tprimat::planner {

// The fastest published run of a planned training's model, GPU, number of GPUs and precision.
struct PublishedBest {
  std::string id;
  double tokens_per_second_per_gpu = 0;
  int64_t sequence_length = 0, global_batch_size = 0;
  std::optional<Routing> routing = {};
  std::string differs = {};  // "SL 4096, GBS 1024, balanced": what the plan has otherwise; empty: nothing that is known

  static constexpr auto fields() {
    using P = PublishedBest;
    return field_list(field("id", &P::id, "for tprimat published show"),
                      field("tokens_per_second_per_gpu", &P::tokens_per_second_per_gpu, "printed or derived"),
                      field("sequence_length", &P::sequence_length, "tokens"),
                      field("global_batch_size", &P::global_batch_size, "sequences per step"),
                      field("routing", &P::routing, "of a mixture of experts; absent: not known"));
  }
};

// Of the built-in tables, without the rows that fits leave out. Runs with the plan's sequence length come first.
// Nothing where no such run is known.
std::optional<PublishedBest> find_published_best(const PlanRequest& request);

// "  published 13 011 tokens/s per GPU at best: bridge-2608-qwen3-30b-a3b-h100-16-bf16-3"
std::string render_published_best(const PublishedBest& best);

}  // namespace tprimat::planner
