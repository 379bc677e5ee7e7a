#pragma once

#include <cstdint>

#include "device/element.h"

// The operands of a product of bf16, whichever instruction multiplies them.
namespace tprimat::engine {

enum class Side : uint8_t { left, right };

// One operand of a product: `count` lines (rows of the left factor, columns of the right one) of `length` elements.
// Element k of line i is at data[i·line_stride + k·step]; one of the strides is 1. In blocks: as MatrixView.
struct Bf16Lines {
  const bf16* data;
  int64_t count, length;
  int64_t line_stride, step;
  bool in_blocks = false;
};

// Lines [line, line + count) and elements [begin, begin + length) of an operand. Lines that it lacks count as zero.
struct Bf16Part {
  int64_t line, count, begin, length;
};

// One of the shares in which several threads pack a part together.
struct PackShare {
  int64_t index = 0, of = 1;
  // Which of `count` pieces are this share's: [first(count), end(count)).
  int64_t first(int64_t count) const { return count * index / of; }
  int64_t end(int64_t count) const { return count * (index + 1) / of; }
};

}  // namespace tprimat::engine
