#include "planner/published_best.h"

#include <fmt/format.h>

#include <tuple>
#include <utility>

#include "planner/published_workload.h"
#include "published/built_in_tables.h"
#include "published/cells.h"
#include "text/format.h"

namespace tprimat::planner {
namespace {

// Whatever they are called, and whether or not they predict further tokens.
bool has_same_work(const ModelSpec& a, const ModelSpec& b) {
  const auto experts = [](const ModelSpec& m) {
    return m.experts ? std::tuple(m.experts->count, m.experts->per_token, m.experts->ffn_hidden_size)
                     : std::tuple(int64_t{0}, int64_t{0}, int64_t{0});
  };
  return a.num_layers == b.num_layers && a.hidden_size == b.hidden_size && a.ffn_hidden_size == b.ffn_hidden_size &&
         a.num_attention_heads == b.num_attention_heads && a.num_key_value_heads == b.num_key_value_heads &&
         a.vocab_size == b.vocab_size && experts(a) == experts(b);
}

bool is_on_same_machine(const PublishedRow& row, const PlanRequest& request) {
  if (count_cell(row, "n_gpus") != request.gpus) return false;
  const Machine* machine = find_printed_machine(row.cell("gpu"));
  return machine != nullptr && machine->id == request.machine.id;
}

bool is_same_training(const PublishedWorkload& read, const PlanRequest& request) {
  const Workload& workload = read.workload;
  return read.missing.empty() && read.weak.empty() && workload.precision == request.precision &&
         workload.document_length == 0 && workload.trains_adapters == request.trains_adapters &&
         has_same_work(workload.shape, request.shape);
}

std::string list_differences(const Workload& workload, const PlanRequest& request) {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (workload.sequence_length != request.sequence_length) add(fmt::format("SL {}", workload.sequence_length));
  if (workload.global_batch != request.global_batch) add(fmt::format("GBS {}", workload.global_batch));
  const bool sparse = request.shape.is_sparse() && workload.routing.has_value();
  if (sparse && workload.routing != request.routing) add(std::string(enum_name(*workload.routing)) + " routing");
  return text;
}

PublishedBest describe(const PublishedRow& row, const PublishedWorkload& read, const PlanRequest& request) {
  const Workload& workload = read.workload;
  PublishedBest best{row.cell("id"), read.tokens_per_second_per_gpu, workload.sequence_length, workload.global_batch};
  if (request.shape.is_sparse()) best.routing = workload.routing;
  best.differs = list_differences(workload, request);
  return best;
}

}  // namespace

std::optional<PublishedBest> find_published_best(const PlanRequest& request) {
  std::optional<PublishedBest> best;
  const auto rank = [&](const PublishedBest& each) {
    return std::pair(each.sequence_length == request.sequence_length, each.tokens_per_second_per_gpu);
  };
  for (const PublishedTable& table : built_in_tables())
    for (const PublishedRow& row : table.rows) {
      if (!is_on_same_machine(row, request)) continue;
      const PublishedWorkload read = read_published_workload(row);
      if (!is_same_training(read, request)) continue;
      PublishedBest found = describe(row, read, request);
      if (!best || rank(found) > rank(*best)) best = std::move(found);
    }
  return best;
}

std::string render_published_best(const PublishedBest& best) {
  return fmt::format("  published {} tokens/s per GPU at best: {}{}\n", format_count(best.tokens_per_second_per_gpu),
                     best.id, best.differs.empty() ? "" : fmt::format(" ({})", best.differs));
}

}  // namespace tprimat::planner
