#include "ops/cpu/amx_tiles.h"

#include <algorithm>
#include <type_traits>

#include "base/check.h"
#include "ops/cpu/amx_instructions.h"
#include "ops/cpu/instruction_sets.h"
#include "ops/cpu/transpose16.h"
#include "ops/matmul.h"

#if TPRIMAT_HAS_AVX512_BF16
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tprimat::engine {
namespace {

using namespace amx;

constexpr int64_t k_tile_size = k_tile_lines * amx::k_step;

bool cpu_has_amx_bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned k_amx_bf16 = 1u << 22, k_amx_tile = 1u << 24;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & k_amx_bf16) != 0 && (d & k_amx_tile) != 0;
}

// The kernel keeps 8 KB more for each thread of a process that asked for it.
bool kernel_grants_tiles() {
  constexpr long k_request_permission = 0x1023, k_tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, k_request_permission, k_tile_data) == 0;
}

// What LDTILECFG reads.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14]{};
  uint16_t bytes_per_row[16]{64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16]{16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileShapes) == 64);

using Block = __m512i[16];  // one tile

TPRIMAT_AVX512_BF16 inline void store_block(const Block& block, bf16* tile) {
  for (int64_t i = 0; i < 16; ++i) _mm512_storeu_si512(tile + i * amx::k_step, block[i]);
}

struct PackedStep {
  Side side;
  int64_t line, lines;        // of 32
  int64_t element, elements;  // of 32
  bf16* to;
};

// A line's elements lie side by side.
TPRIMAT_AVX512_BF16 void pack_along_lines(const Bf16Lines& from, const PackedStep& step) {
  const __mmask32 present = first_lanes(step.elements);
  for (int64_t group = 0; group < 2; ++group) {
    const int64_t lines = step.lines - group * k_tile_lines;
    const bf16* const first = from.data + (step.line + group * k_tile_lines) * from.line_stride + step.element;
    Block block;
    for (int64_t i = 0; i < k_tile_lines; ++i) {
      block[i] = i < lines ? _mm512_maskz_loadu_epi16(present, first + i * from.line_stride) : _mm512_setzero_si512();
      __builtin_prefetch(first + i * from.line_stride + amx::k_step);  // of the next step
    }
    if (step.side == Side::right) transpose(block);
    store_block(block, step.to + group * k_tile_size);
  }
}

// Pairs of one element and the next of 16 lines, from 32 lines of each.
TPRIMAT_AVX512_BF16 inline __m512i interleave(__m256i even, __m256i odd) {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(even), _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16));
}

// The same element of all lines lies side by side. load(i): element i of 32 lines.
template <class Load>
TPRIMAT_INLINE_AVX512_BF16 inline void pack_across_lines(const PackedStep& step, const Load& load) {
  Block low, high;
  for (int64_t pair = 0; pair < 16; ++pair) {
    const __m512i even = load(2 * pair), odd = load(2 * pair + 1);
    low[pair] = interleave(_mm512_castsi512_si256(even), _mm512_castsi512_si256(odd));
    high[pair] = interleave(_mm512_extracti64x4_epi64(even, 1), _mm512_extracti64x4_epi64(odd, 1));
  }
  if (step.side == Side::left) transpose(low), transpose(high);
  store_block(low, step.to);
  store_block(high, step.to + k_tile_size);
}
TPRIMAT_AVX512_BF16 void pack_from_rows(const Bf16Lines& from, const PackedStep& step) {
  const __mmask32 present = first_lanes(step.lines);
  const bf16* const first = from.data + step.element * from.step + step.line;
  pack_across_lines(
      step, [&](int64_t i) __attribute__((always_inline)) TPRIMAT_AVX512_BF16 {
        const bf16* const at = first + i * from.step;
        __builtin_prefetch(at + amx::k_panel_lines);  // of the next panel
        return i < step.elements ? _mm512_maskz_loadu_epi16(present, at) : _mm512_setzero_si512();
      });
}
// A block holds what one step packs: 32 elements of k of 32 lines.
TPRIMAT_AVX512_BF16 void pack_from_block(const Bf16Lines& from, const PackedStep& step) {
  const bf16* const first = from.data + step.element * from.step + step.line * amx::k_step;
  pack_across_lines(
      step, [&](int64_t i) __attribute__((always_inline)) TPRIMAT_AVX512_BF16 {
        const bf16* const at = first + i * amx::k_panel_lines;
        __builtin_prefetch(at + amx::k_step * from.step, 0, 2);  // of the next step
        return _mm512_loadu_si512(at);
      });
}

}  // namespace

bool has_amx() {
  static const bool has = may_use_amx() && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                          cpu_has_amx_bf16() && kernel_grants_tiles();
  return has;
}

TileRegisters::TileRegisters() {
  static constexpr TileShapes k_full;
  if (has_amx()) asm volatile("ldtilecfg %0" ::"m"(k_full));
}
TileRegisters::~TileRegisters() {
  if (has_amx()) asm volatile("tilerelease");
}

namespace amx {

// In the order of memory, so that it is read in long runs.
void pack_panels(Side side, const Bf16Lines& from, const Bf16Part& part, bf16* panels, const PackShare& share) {
  static_assert(k_panel_lines == k_block_side && k_step == k_block_side);
  CHECK(!from.in_blocks || from.step != 1);
  const int64_t panel_total = panel_count(part.count), steps = step_count(part.length);
  const auto pack_step = [&](int64_t panel, int64_t step) {
    const int64_t line = part.line + panel * k_panel_lines, element = step * k_step;
    const PackedStep where{side,
                           line,
                           std::min({k_panel_lines, from.count - line, part.count - panel * k_panel_lines}),
                           part.begin + element,
                           std::min(k_step, part.length - element),
                           panels + (panel * steps + step) * k_step_size};
    if (from.step == 1)
      pack_along_lines(from, where);
    else if (from.in_blocks)
      pack_from_block(from, where);
    else
      pack_from_rows(from, where);
  };
  if (from.step == 1) {
    for (int64_t panel = share.first(panel_total); panel < share.end(panel_total); ++panel)
      for (int64_t step = 0; step < steps; ++step) pack_step(panel, step);
  } else {
    for (int64_t step = share.first(steps); step < share.end(steps); ++step)
      for (int64_t panel = 0; panel < panel_total; ++panel) pack_step(panel, step);
  }
}

LeftPanel packed_left(const bf16* panel) { return {panel, k_tile_size, k_step_size, k_step * sizeof(bf16)}; }
LeftPanel plain_left(const bf16* rows, int64_t row_stride) {
  return {rows, k_tile_lines * row_stride, k_step, row_stride * static_cast<int64_t>(sizeof(bf16))};
}

}  // namespace amx
}  // namespace tprimat::engine

#else  // another CPU: has_amx() says so, and nobody asks for the rest

namespace tprimat::engine {
bool has_amx() { return false; }
TileRegisters::TileRegisters() = default;
TileRegisters::~TileRegisters() = default;
namespace amx {
void pack_panels(Side, const Bf16Lines&, const Bf16Part&, bf16*, const PackShare&) { CHECK(false); }
LeftPanel packed_left(const bf16*) { return {}; }
LeftPanel plain_left(const bf16*, int64_t) { return {}; }
}  // namespace amx
}  // namespace tprimat::engine
#endif
