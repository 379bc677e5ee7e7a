#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "comm/communicator.h"

namespace tprimat::engine {

// What a moment of a step belongs to.
enum class OpPhase : uint8_t { none, forward, recompute, backward, optimizer, data, evaluation, checkpoint };

// Where in a step the training is.
struct OpScope {
  OpPhase phase = OpPhase::none;
  int32_t layer = -1, micro_batch = -1;  // -1: outside of any
};

// Sizes of a tensor that an operation reads, the outermost first; 0 ends them.
using OpDims = std::array<int64_t, 4>;

// What one call of an operation computes and moves.
struct OpWork {
  double flops = 0;  // 0 for operations that are bound by memory
  double bytes = 0;  // read and written, each operand once
  std::array<OpDims, 2> inputs = {};
  ElementType type = ElementType::bytes;  // of the inputs' elements
};

// The ranks that a collective moves data among.
struct OpGroup {
  std::string_view name;  // "data", "tensor": static text
  int size = 0;
};

enum class OpKind : uint8_t { operation, product, collective, range };

// One call of an operation, or a range of the step.
struct OpEvent {
  std::string name;
  OpKind kind = OpKind::operation;
  OpScope scope;
  OpWork work;
  OpGroup group;
  std::chrono::steady_clock::time_point begin, end;
};

// [rows, inputs] times [inputs, outputs].
template <class T>
OpWork product_work(int64_t rows, int64_t inputs, int64_t outputs) {
  const double m = static_cast<double>(rows), n = static_cast<double>(outputs), k = static_cast<double>(inputs);
  return {2 * m * n * k,
          static_cast<double>(sizeof(T)) * (m * n + n * k + m * k),
          {OpDims{rows, inputs}, OpDims{inputs, outputs}},
          element_type_of<T>()};
}

// An operation that goes `passes` times over `rows` times `columns` values.
template <class T>
OpWork memory_work(int64_t rows, int64_t columns, double passes) {
  return {0,
          passes * static_cast<double>(sizeof(T)) * static_cast<double>(rows * columns),
          {OpDims{rows, columns}},
          element_type_of<T>()};
}

}  // namespace tprimat::engine
