#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/enum_names.h"

namespace tprimat::logs {

// What a worker of a pipeline does in a step. The names are those of Megatron-LM's timers and of published traces.
enum class OperationKind : uint8_t {
  params_all_gather,
  forward_recv,
  forward_compute,
  forward_send,
  backward_recv,
  backward_compute,
  backward_send,
  gc,  // garbage collection
  layernorm_grads_all_reduce,
  embedding_grads_all_reduce,
  grads_reduce_scatter,
  separate_grads_all_reduce,  // of gradients that the overlapped reduce-scatter leaves out
  optimizer_clip_main_grad,
  optimizer
};

// One row: an operation of a worker, which is one stage of one data-parallel replica. -1: not stated, does not apply.
struct WorkerOperation {
  int64_t step = 0;
  int32_t dp_rank = 0, stage = 0, rank = -1;
  OperationKind kind = OperationKind::forward_compute;
  int32_t chunk = -1;  // of the model on this stage: virtual stage
  int32_t micro_batch = -1;
  double begin = 0, duration = 0;  // seconds; begin by a clock that all workers of the step share
};

// A table of operations, line by line; memory is that of the rows kept.
//
// CSV with a header, columns in any order, others are ignored:
//   step, dp_rank, stage, operation, begin, duration [, rank, chunk, micro_batch]
// or JSON lines, one object with these keys each. Other accepted names: pp_rank and pp_stage (stage), optype and kind
// (operation), start_ts and start (begin), mc and model_chunk (chunk), mb_id (micro_batch). Operations are written as
// in OperationKind, with "-" or "_". Times are seconds.
class OperationTableReader {
 public:
  explicit OperationTableReader(std::string_view where) : where_(where) {}

  // One line without its end. Throws Error with the line's number.
  void read_line(std::string_view line);

  // The rows, ordered by step, replica, stage and begin. Throws Error where there are none, and where two ranks claim
  // one worker.
  std::vector<WorkerOperation> finish();

 private:
  struct Cell {
    std::string_view name, text;
  };
  void read_header(std::string_view line);
  void read_row(std::string_view line);
  void read_object(std::string_view line);
  void add(const std::vector<Cell>& cells);
  [[noreturn]] void fail(std::string what, std::string hint = "") const;

  std::string where_;
  int64_t line_number_ = 0;
  std::vector<std::string> header_;
  std::vector<WorkerOperation> rows_;
};

// Orders rows as OperationTableReader::finish() does, with its check of ranks.
void sort_operations(std::vector<WorkerOperation>& rows, std::string_view where);

// Whether the first line is a header or an object of such a table.
bool is_operation_table(std::string_view text);

// The whole table from memory.
std::vector<WorkerOperation> read_operation_table(std::string_view text, std::string_view where);

}  // namespace tprimat::logs
