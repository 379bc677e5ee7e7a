#include "planner/row_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "published/cells.h"
#include "published/notes.h"

namespace tprimat::planner {
namespace {

constexpr int64_t k_max_batch = int64_t{1} << 30;  // sequences per step; more is no training's

// Words of a row's layout that stand in its notes: "model-parallel size 96", "model parallel partitions 8".
std::optional<int64_t> noted_model_parallel(const PublishedRow& row) {
  const auto found = find_in_notes(row, "model-parallel size ([1-9][0-9]{0,4})");
  if (found.empty()) return std::nullopt;
  return std::stoll(found[0]);
}

void take_model_parallel(Layout& layout, int64_t size, int64_t gpus_per_node) {
  layout.tensor = std::min(size, gpus_per_node);
  layout.pipeline = size / layout.tensor;
}

bool prints_layout(const PublishedRow& row, const Workload& workload, int64_t gpus) {
  return gpus == 1 || count_cell(row, "tp") || count_cell(row, "pp") || workload.family->fully_sharded ||
         mentions(lower_text(row.cell("sharding")), "fsdp") || noted_model_parallel(row);
}

// Layers that a pipeline cannot share evenly, but could with embedding and loss among them.
bool needs_ends_as_layers(int64_t layers, int64_t chunks) { return layers % chunks != 0 && (layers + 2) % chunks == 0; }

void read_chunks(PublishedWorkload& read, const PublishedRow& row) {
  Workload& workload = read.workload;
  Layout& layout = workload.layout;
  layout.chunks = count_cell(row, "vp").value_or(1);
  const int64_t units = workload.shape.model.num_layers;
  layout.ends_as_layers = needs_ends_as_layers(units, layout.pipeline * layout.chunks);
  if (count_cell(row, "vp") || layout.pipeline <= 1) return;
  const int64_t layers = std::max<int64_t>(1, (units + (layout.ends_as_layers ? 2 : 0)) / layout.pipeline);
  layout.chunks = workload.family->chunks == 0 ? layers : std::min(workload.family->chunks, layers);
  if (layout.chunks > 1) read.assumptions.push_back(fmt::format("VP {}", layout.chunks));
}

void read_sharding(Workload& workload, const PublishedRow& row) {
  const std::string text = lower_text(row.cell("sharding"));
  Sharding& sharding = workload.layout.sharding;
  if (workload.family->sharded_optimizer || mentions(text, "zero1")) sharding = Sharding::optimizer;
  if (mentions(text, "zero0")) sharding = Sharding::none;
  if (mentions(text, "zero2")) sharding = Sharding::gradients;
  const bool whole = mentions(text, "fsdp") && !mentions(text, "not resharded");
  if (workload.family->fully_sharded || mentions(text, "zero3") || whole) sharding = Sharding::weights;
}

}  // namespace

bool read_row_layout(PublishedWorkload& read, const PublishedRow& row, int64_t gpus) {
  Layout& layout = read.workload.layout;
  layout.tensor = count_cell(row, "tp").value_or(1);
  layout.pipeline = count_cell(row, "pp").value_or(1);
  layout.context = count_cell(row, "cp").value_or(1);
  if (const auto size = noted_model_parallel(row); size && layout.tensor * layout.pipeline == 1)
    take_model_parallel(layout, *size, read.machine.gpus_per_domain);
  if (!prints_layout(row, read.workload, gpus)) {
    read.missing = "no layout";
    return false;
  }
  const double model =
      static_cast<double>(layout.tensor) * static_cast<double>(layout.pipeline) * static_cast<double>(layout.context);
  if (model > static_cast<double>(gpus) || layout.pipeline > read.workload.shape.model.num_layers) {
    read.missing = "an inconsistent layout";
    return false;
  }
  layout.data = gpus / (layout.tensor * layout.pipeline * layout.context);
  read_chunks(read, row);
  read_sharding(read.workload, row);
  return true;
}

namespace {

// Where the micro-batch is not printed: the largest power of two up to 4 that keeps a pipeline four times full.
int64_t assume_micro_batch(const Workload& workload) {
  const Layout& layout = workload.layout;
  const int64_t per_rank = workload.global_batch / layout.data;
  const int64_t most = std::min<int64_t>(4, layout.pipeline > 1 ? per_rank / (4 * layout.pipeline) : per_rank);
  int64_t size = 1;
  while (2 * size <= most) size *= 2;
  return size;
}

// "batch size per DP group 32"
std::optional<int64_t> noted_batch_per_rank(const PublishedRow& row) {
  const auto found = find_in_notes(row, "batch size per DP group ([0-9]{1,5})");
  if (found.empty()) return std::nullopt;
  return std::stoll(found[0]);
}

int64_t read_global_batch(const PublishedRow& row, const Workload& workload) {
  const Layout& layout = workload.layout;
  if (const auto global = count_cell(row, "gbs")) return *global;
  if (const auto each = noted_batch_per_rank(row)) return std::min(*each * layout.data, k_max_batch);
  const auto micro = count_cell(row, "mbs"), steps = count_cell(row, "ga");
  const bool once = layout.pipeline == 1 || workload.family->operator_recompute;
  if (!micro || (!steps && !once)) return 0;
  const double product = static_cast<double>(*micro) * static_cast<double>(steps.value_or(1) * layout.data);
  return product <= k_max_batch ? static_cast<int64_t>(product) : 0;
}

}  // namespace

bool read_row_batch(PublishedWorkload& read, const PublishedRow& row) {
  Workload& workload = read.workload;
  Layout& layout = workload.layout;
  workload.global_batch = read_global_batch(row, workload);
  if (workload.global_batch < 1) {
    read.missing = "no batch";
    return false;
  }
  const auto micro = count_cell(row, "mbs");
  layout.micro_batch = micro.value_or(assume_micro_batch(workload));
  if (!micro) read.assumptions.push_back(fmt::format("MBS {}", layout.micro_batch));
  // torchtitan's local batch is cut into micro-batches of one sequence where there is a pipeline.
  if (workload.family->operator_recompute && layout.pipeline > 1) layout.micro_batch = 1;
  layout.micro_batch = std::min(layout.micro_batch, std::max<int64_t>(1, workload.global_batch / layout.data));
  return true;
}

}  // namespace tprimat::planner
