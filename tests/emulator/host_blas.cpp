// The matrix library's functions on the processor, with its column-major words and the limits of its 8-bit kernels, as
// host_runtime.cpp has those of the runtime.
#include "emulator/host_blas.h"

#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "base/check.h"
#include "ops/gpu/blas.h"
#include "ops/reference/fp8_product.h"
#include "ops/reference/gelu.h"

namespace tprimat::engine::gpu::host {
namespace {

constexpr blas::Status k_invalid = 7, k_not_supported = 15;

// Is good for the GPU for which it was made.
struct HostHandle {
  int device;
};

struct HostOperation {
  int compute = 0;
  int transpose_a = blas::k_as_is, transpose_b = blas::k_as_is;
  blas::BlasEpilogue epilogue = blas::BlasEpilogue::none;
  void *bias = nullptr, *aux = nullptr;
  int64_t aux_stride = 0;
  const float *scale_a = nullptr, *scale_b = nullptr;
  int8_t fast_sums = 0;
};

struct HostLayout {
  blas::Number number;
  int64_t rows, cols, stride;
};

struct HostPreference {
  uint64_t workspace_bytes = 0;
  std::array<uint32_t, 4> alignments = {};
};

template <class T>
T& as(void* object) {
  return *static_cast<T*>(object);
}

bool is_fp8(blas::Number number) { return number == blas::Number::e4m3 || number == blas::Number::e5m2; }

// A value of the library's operand, row r and column c of op(X).
struct Operand {
  const HostLayout& layout;
  bool transposed;
  int64_t rows() const { return transposed ? layout.cols : layout.rows; }
  int64_t cols() const { return transposed ? layout.rows : layout.cols; }
};

bool is_known(const HostOperation& op, const HostLayout& a, const HostLayout& b, const HostLayout& d) {
  const Operand left{a, op.transpose_a == blas::k_transposed}, right{b, op.transpose_b == blas::k_transposed};
  if (left.cols() != right.rows() || left.rows() != d.rows || right.cols() != d.cols) return false;
  if (is_fp8(a.number) != is_fp8(b.number)) return false;
  if (!is_fp8(a.number)) return a.number == b.number && (d.number == a.number || d.number == blas::Number::float32);
  if (a.number == blas::Number::e5m2 && b.number == blas::Number::e5m2) return false;
  return left.transposed && !right.transposed && d.rows % 16 == 0 && d.cols % 16 == 0 && left.cols() % 16 == 0 &&
         op.scale_a != nullptr && op.scale_b != nullptr;
}

float value_at(const void* data, blas::Number number, int64_t at) {
  const auto byte = [&] { return static_cast<const uint8_t*>(data)[at]; };
  switch (number) {
    case blas::Number::float32: return static_cast<const float*>(data)[at];
    case blas::Number::bfloat16: return widen(static_cast<const bf16*>(data)[at]);
    case blas::Number::float16: return widen(static_cast<const f16*>(data)[at]);
    case blas::Number::e4m3: return reference::fp8_value<float>(byte(), Fp8Format::e4m3);
    case blas::Number::e5m2: return reference::fp8_value<float>(byte(), Fp8Format::e5m2);
    default: CHECK(!"a format of the shim");
  }
}

struct Lines {
  int64_t count, length;
  std::vector<float> values;
  float* line(int64_t index) { return values.data() + index * length; }
  const float* line(int64_t index) const { return values.data() + index * length; }
};

// Columns of op(X), one after the other: op(X)ᵀ row by row.
Lines columns_of(const Operand& x, const void* data, const float* scale) {
  Lines lines{x.cols(), x.rows(), std::vector<float>(static_cast<size_t>(x.rows() * x.cols()))};
  const int64_t step = x.transposed ? x.layout.stride : 1, next = x.transposed ? 1 : x.layout.stride;
  for (int64_t c = 0; c < lines.count; ++c)
    for (int64_t r = 0; r < lines.length; ++r)
      lines.line(c)[r] = value_at(data, x.layout.number, c * next + r * step) * (scale != nullptr ? *scale : 1.0f);
  return lines;
}

void write_value(void* data, blas::Number number, int64_t at, float value) {
  if (number == blas::Number::float32) static_cast<float*>(data)[at] = value;
  if (number == blas::Number::bfloat16) static_cast<bf16*>(data)[at] = narrow<bf16>(value);
  if (number == blas::Number::float16) static_cast<f16*>(data)[at] = narrow<f16>(value);
}
// What the work needs, by value: the library's objects may be gone when it is done.
struct Multiplication {
  HostOperation op;
  HostLayout a, b, d;
  const void *a_data, *b_data;
  void* d_data;
  float beta;
};

// As the hardware's short tanh, whose results have 11 good bits: a gelu and its slope off by as much.
float roughly(float exact, float x) { return exact + 0x1.0p-11f * std::min(std::abs(x), 1.0f); }

float finish_value(const Multiplication& m, float sum, int64_t row, int64_t col) {
  const HostOperation& op = m.op;
  const int64_t aux_at = col * op.aux_stride + row;
  switch (op.epilogue) {
    case blas::BlasEpilogue::bias: return sum + value_at(op.bias, m.d.number, row);
    case blas::BlasEpilogue::gelu_aux_bias: sum += value_at(op.bias, m.d.number, row); [[fallthrough]];
    case blas::BlasEpilogue::gelu_aux:
      write_value(op.aux, m.d.number, aux_at, sum);
      return roughly(reference::gelu(sum), sum);
    case blas::BlasEpilogue::dgelu:
      return sum * roughly(reference::gelu_slope(value_at(op.aux, m.d.number, aux_at)), 1);
    default: return sum;
  }
}

void store_column(const Multiplication& m, int64_t col, const std::vector<float>& sums) {
  for (int64_t row = 0; row < m.d.rows; ++row) {
    const int64_t at = col * m.d.stride + row;
    float sum = sums[static_cast<size_t>(row)];
    if (m.beta != 0) sum += m.beta * value_at(m.d_data, m.d.number, at);
    write_value(m.d_data, m.d.number, at, finish_value(m, sum, row, col));
  }
}

void do_multiply(const Multiplication& m) {
  const Lines a = columns_of({m.a, m.op.transpose_a == blas::k_transposed}, m.a_data, m.op.scale_a);
  const Lines b = columns_of({m.b, m.op.transpose_b == blas::k_transposed}, m.b_data, m.op.scale_b);
  for (int64_t col = 0; col < m.d.cols; ++col) {
    std::vector<float> sums(static_cast<size_t>(m.d.rows));
    for (int64_t k = 0; k < a.count; ++k)
      for (int64_t row = 0; row < m.d.rows; ++row) sums[static_cast<size_t>(row)] += a.line(k)[row] * b.line(col)[k];
    if (m.op.epilogue == blas::BlasEpilogue::sums_of_b)
      static_cast<float*>(m.op.bias)[col] = std::accumulate(b.line(col), b.line(col) + b.length, 0.0f);
    store_column(m, col, sums);
  }
}

blas::Status set_operation(blas::Operation operation, int attribute, const void* value, size_t bytes) {
  auto& op = as<HostOperation>(operation);
  const auto take = [&](auto& field) -> blas::Status {
    if (bytes != sizeof field) return k_invalid;
    std::memcpy(&field, value, bytes);
    return 0;
  };
  switch (attribute) {
    case blas::operation::k_transpose_a: return take(op.transpose_a);
    case blas::operation::k_transpose_b: return take(op.transpose_b);
    case blas::operation::k_epilogue: return take(op.epilogue);
    case blas::operation::k_bias_pointer: return take(op.bias);
    case blas::operation::k_aux_pointer: return take(op.aux);
    case blas::operation::k_aux_stride: return take(op.aux_stride);
    case blas::operation::k_scale_a_pointer: return take(op.scale_a);
    case blas::operation::k_scale_b_pointer: return take(op.scale_b);
    case blas::operation::k_fast_sums: return take(op.fast_sums);
    default: return k_invalid;
  }
}

blas::Status set_preference(blas::Preference preference, int attribute, const void* value, size_t bytes) {
  auto& p = as<HostPreference>(preference);
  if (attribute == blas::preference::k_workspace_bytes && bytes == sizeof p.workspace_bytes) {
    std::memcpy(&p.workspace_bytes, value, bytes);
    return 0;
  }
  const int which = attribute - blas::preference::k_first_alignment;
  if (which < 0 || which > 3 || bytes != sizeof(uint32_t)) return k_invalid;
  std::memcpy(&p.alignments[static_cast<size_t>(which)], value, bytes);
  return 0;
}

// As the library, it wants 16 bytes' alignment for 8-bit numbers and what epilogues keep.
blas::Status find_candidates(blas::Handle handle, blas::Operation operation, blas::Layout a, blas::Layout b,
                             blas::Layout, blas::Layout d, blas::Preference preference, int capacity,
                             blas::Candidate* candidates, int* count) {
  ++blas_habits().searches;
  *count = 0;
  if (as<HostHandle>(handle).device != current_device()) return k_invalid;
  const auto& op = as<HostOperation>(operation);
  if (!is_known(op, as<HostLayout>(a), as<HostLayout>(b), as<HostLayout>(d))) return k_not_supported;
  if (is_fp8(as<HostLayout>(a).number))
    for (const uint32_t alignment : as<HostPreference>(preference).alignments)
      if (alignment < 16) return k_not_supported;
  if (op.epilogue != blas::BlasEpilogue::none && !blas_habits().knows_epilogues) return k_not_supported;
  if (op.compute == blas::k_compute_tf32 && !blas_habits().knows_tf32) return k_not_supported;
  if (op.aux != nullptr && op.aux_stride % 8 != 0) return k_not_supported;
  *count = std::min(capacity, blas_habits().candidates);
  for (int i = 0; i < *count; ++i) {
    candidates[i] = {};
    candidates[i].algorithm.data[0] = static_cast<uint64_t>(i);
  }
  return 0;
}

blas::Status multiply(blas::Handle handle, blas::Operation operation, const void* alpha, const void* a,
                      blas::Layout a_layout, const void* b, blas::Layout b_layout, const void* beta, const void* c,
                      blas::Layout, void* d, blas::Layout d_layout, const blas::Algorithm* algorithm, void*, size_t,
                      Stream) {
  if (as<HostHandle>(handle).device != current_device()) return k_invalid;
  if (*static_cast<const float*>(alpha) != 1.0f || c != d) return k_not_supported;
  const Multiplication m{as<HostOperation>(operation),
                         as<HostLayout>(a_layout),
                         as<HostLayout>(b_layout),
                         as<HostLayout>(d_layout),
                         a,
                         b,
                         d,
                         *static_cast<const float*>(beta)};
  if (!is_known(m.op, m.a, m.b, m.d)) return k_not_supported;
  const auto candidate = static_cast<size_t>(algorithm->data[0]);
  const bool fused = m.op.epilogue != blas::BlasEpilogue::none;
  ++blas_habits().products;
  blas_habits().fused_products += fused ? 1 : 0;
  blas_habits().last_candidate = static_cast<int>(candidate);
  const double extra = fused ? blas_habits().epilogue_milliseconds : 0;
  submit([m, pause = blas_habits().pause_milliseconds.at(candidate) + extra] {
    if (pause > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(pause));
    do_multiply(m);
  });
  return 0;
}

template <class T, class... Values>
blas::Status create(void** made, Values... values) {
  *made = new T{values...};
  return 0;
}
template <class T>
blas::Status destroy(void* object) {
  delete static_cast<T*>(object);
  return 0;
}

}  // namespace

BlasHabits& blas_habits() {
  static BlasHabits habits;
  return habits;
}

}  // namespace tprimat::engine::gpu::host

namespace tprimat::engine::gpu::blas {

const BlasCalls& functions() {
  using namespace host;
  static const BlasCalls table{
      .create =
          [](Handle* made) {
            ++blas_habits().handles;
            return create<HostHandle>(made, current_device());
          },
      .destroy =
          [](Handle made) {
            --blas_habits().handles;
            return destroy<HostHandle>(made);
          },
      .operation_create = [](Operation* made, int compute, int) { return create<HostOperation>(made, compute); },
      .operation_destroy = &destroy<HostOperation>,
      .operation_set = &set_operation,
      .layout_create =
          [](Layout* made, int number, uint64_t rows, uint64_t cols, int64_t stride) {
            return create<HostLayout>(made, static_cast<Number>(number), static_cast<int64_t>(rows),
                                      static_cast<int64_t>(cols), stride);
          },
      .layout_destroy = &destroy<HostLayout>,
      .preference_create = [](Preference* made) { return create<HostPreference>(made); },
      .preference_destroy = &destroy<HostPreference>,
      .preference_set = &set_preference,
      .find_candidates = &find_candidates,
      .multiply = &multiply,
      .status_text = nullptr,
  };
  return table;
}

}  // namespace tprimat::engine::gpu::blas
