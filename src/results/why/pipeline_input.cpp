#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "extract/log_source.h"
#include "why/operation_file.h"
#include "why/pipeline_report.h"

namespace tprimat::results {
namespace {

using logs::OperationKind;
using logs::WorkerOperation;

// Megatron's interleaved schedule: groups of as many micro-batches as there are stages go through one chunk after the
// other; backward in the opposite order.
void set_place(WorkerOperation& row, int64_t place, int64_t stages, int64_t chunks) {
  const int64_t round = place / stages;
  const int64_t chunk = round % chunks;
  row.chunk = static_cast<int32_t>(row.kind == OperationKind::forward_compute ? chunk : chunks - 1 - chunk);
  row.micro_batch = static_cast<int32_t>(chunks == 1 ? place : round / chunks * stages + place % stages);
}

void add_operations(const std::vector<logs::Span>& spans, WorkerOperation row, int64_t stages, int64_t chunks,
                    std::vector<WorkerOperation>& operations) {
  for (size_t i = 0; i < spans.size(); ++i) {
    row.begin = static_cast<double>(spans[i].begin) / 1e9;
    row.duration = static_cast<double>(spans[i].length()) / 1e9;
    set_place(row, static_cast<int64_t>(i), stages, chunks);
    operations.push_back(row);
  }
}

}  // namespace

std::vector<WorkerOperation> operations_of(const logs::PipelineRecords& records) {
  const auto& layout = records.layout;
  const int64_t ranks = std::max<int64_t>(1, layout.world_size.value_or(std::ssize(records.ranks)));
  const int64_t stages = std::clamp<int64_t>(layout.pipeline.value_or(ranks), 1, ranks);
  const int64_t per_stage = std::max<int64_t>(1, ranks / stages);
  const int64_t tensor = std::clamp<int64_t>(layout.tensor.value_or(1), 1, per_stage);
  const int64_t chunks = std::max<int64_t>(1, layout.virtual_stages.value_or(1));
  std::vector<WorkerOperation> operations;
  for (const logs::PipelineRank& rank : records.ranks) {
    if (rank.rank % tensor != 0) continue;
    for (size_t i = rank.iterations.size() > 1 ? 1 : 0; i < rank.iterations.size(); ++i) {
      WorkerOperation row;
      row.step = rank.iterations[i].iteration;
      row.rank = static_cast<int32_t>(rank.rank);
      row.stage = static_cast<int32_t>(rank.rank / per_stage);
      row.dp_rank = static_cast<int32_t>(rank.rank % per_stage / tensor);
      add_operations(rank.iterations[i].forward, row, stages, chunks, operations);
      row.kind = OperationKind::backward_compute;
      add_operations(rank.iterations[i].backward, row, stages, chunks, operations);
    }
  }
  logs::sort_operations(operations, "pipeline records");
  return operations;
}

bool is_pipeline_input(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return logs::is_pipeline_folder(path);
  logs::LogSource source(path);
  return logs::is_operation_table(source.next_lines());
}

PipelineReplay load_pipeline(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return make_pipeline_replay(load_operations(path), path.string());
  return make_pipeline_replay(operations_of(logs::read_pipeline_records(path)), path.string());
}

}  // namespace tprimat::results
