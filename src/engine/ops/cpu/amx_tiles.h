#pragma once

#include <cstdint>

#include "ops/cpu/bf16_lines.h"

// Products of bf16 by AMX: a tile is a register of 16 rows of 64 bytes, and one instruction (TDPBF16PS) adds the
// product of two of them, 16×32 and 32×16 numbers, to a tile of 16×16 floats. Intel Architecture Instruction Set
// Extensions Programming Reference, chapter 3.
namespace tprimat::engine {

// Whether this CPU multiplies bf16 by tiles, and the kernel lets this process use them.
bool has_amx();

// While one lives, its thread has all eight tiles of full size; nothing where has_amx() is false.
class TileRegisters {
 public:
  TileRegisters();
  ~TileRegisters();
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;
};

// A packed operand is a row of panels of 32 lines, and a panel a row of steps of 32 elements. A step is two tiles of 16
// lines: of the left side a row per line, of the right side a row per pair of elements (k, k + 1), that of all lines
// side by side. Lines and elements past the last are zero.
namespace amx {
constexpr int64_t k_panel_lines = 32, k_step = 32, k_step_size = k_panel_lines * k_step;  // elements
inline int64_t step_count(int64_t length) { return (length + k_step - 1) / k_step; }
inline int64_t panel_count(int64_t lines) { return (lines + k_panel_lines - 1) / k_panel_lines; }
inline int64_t panel_size(int64_t length) { return step_count(length) * k_step_size; }

void pack_panels(Side side, const Bf16Lines& from, const Bf16Part& part, bf16* panels, const PackShare& share = {});

// 32 lines of the left side, packed or as they lie: the second 16 of them are `to_second` elements on, the next step
// `to_next`, and the next line of a tile `row_bytes`.
struct LeftPanel {
  const bf16* first;
  int64_t to_second, to_next, row_bytes;
};
LeftPanel packed_left(const bf16* panel);
LeftPanel plain_left(const bf16* rows, int64_t row_stride);
}  // namespace amx

}  // namespace tprimat::engine
