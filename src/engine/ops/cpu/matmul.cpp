#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/printable.h"
#include "device/openmp.h"
#include "device/parallel.h"
#include "ops/cpu/amx_product.h"
#include "ops/cpu/amx_tiles.h"
#include "ops/cpu/bf16_panels.h"
#include "ops/cpu/bf16_product.h"
#include "ops/cpu/float_product.h"
#include "ops/cpu/instruction_sets.h"
#include "ops/cpu/onednn.h"
#include "ops/fused_from_parts.h"
#include "ops/op_table.h"
#include "ops/reference/matmul.h"

namespace tprimat::engine {
namespace {

using DataType = dnnl::memory::data_type;

template <class T>
constexpr DataType data_type_of() {
  if constexpr (std::is_same_v<T, bf16>) return DataType::bf16;
  if constexpr (std::is_same_v<T, f16>) return DataType::f16;
  return DataType::f32;
}

// Everything that decides which kernel runs.
struct Problem2d {
  std::array<int64_t, 3> sizes;    // M, N, K
  std::array<int64_t, 6> strides;  // of a, b, c
  DataType input, output;
  bool accumulate;
  auto operator<=>(const Problem2d&) const = default;
};

struct Plan {
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
};

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// One a thread: each multiplies tiles of its own.
dnnl::stream& cpu_stream() {
  thread_local dnnl::stream stream(cpu_engine());
  return stream;
}

void* scratch_memory(size_t bytes) {
  thread_local std::vector<std::byte> memory;
  if (memory.size() < bytes) memory.resize(bytes);
  return memory.data();
}

// oneDNN computes on the thread that calls it: its own threads would wait for each other, and for those of the pool.
// Some of its kernels take their number of threads from the moment that they are made.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

// Nothing where oneDNN has no kernel for this problem on this CPU (bf16 below AVX-512, f16 without AVX512-FP16), or
// only its plain reference.
std::optional<Plan> make_plan(const Problem2d& problem) {
  const OneThread one_thread;
  const auto [m, n, k] = problem.sizes;
  const auto& s = problem.strides;
  const dnnl::memory::desc a({m, k}, problem.input, {s[0], s[1]});
  const dnnl::memory::desc b({k, n}, problem.input, {s[2], s[3]});
  const dnnl::memory::desc c({m, n}, problem.output, {s[4], s[5]});
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (problem.accumulate) {
    dnnl::post_ops add_to_output;
    add_to_output.append_sum(1.0f);
    attributes.set_post_ops(add_to_output);
  }
  try {
    const dnnl::matmul::primitive_desc description = describe_product(cpu_engine(), a, b, c, attributes);
    if (std::string_view(description.impl_info_str()).starts_with("ref")) return std::nullopt;
    return Plan{description, dnnl::matmul(description)};
  } catch (const dnnl::error& error) {
    CHECK(error.status == dnnl_unimplemented);
    return std::nullopt;
  }
}

// Plans live as long as the process: a training repeats the same few dozen products.
class PlanCache {
 public:
  const std::optional<Plan>& plan_for(const Problem2d& problem) {
    const auto found = plans_.find(problem);
    if (found != plans_.end()) return found->second;
    return plans_.emplace(problem, make_plan(problem)).first->second;
  }

 private:
  std::map<Problem2d, std::optional<Plan>> plans_;
};

PlanCache& plan_cache() {
  static PlanCache cache;
  return cache;
}

template <class T>
void* raw(T* data) {
  return const_cast<std::remove_const_t<T>*>(data);
}

void execute(const Plan& plan, void* a, void* b, void* c) {
  const OneThread one_thread;
  const auto& description = plan.description;
  const dnnl::memory scratch(description.scratchpad_desc(), cpu_engine(),
                             scratch_memory(description.scratchpad_desc().get_size()));
  plan.primitive.execute(cpu_stream(), {{DNNL_ARG_SRC, dnnl::memory(description.src_desc(), cpu_engine(), a)},
                                        {DNNL_ARG_WEIGHTS, dnnl::memory(description.weights_desc(), cpu_engine(), b)},
                                        {DNNL_ARG_DST, dnnl::memory(description.dst_desc(), cpu_engine(), c)},
                                        {DNNL_ARG_SCRATCHPAD, scratch}});
  cpu_stream().wait();
}

template <class T, class C>
Problem2d describe(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<C>& c,
                   bool accumulate) {
  return {{c.rows, c.cols, a.cols},
          {a.row_stride, a.col_stride, b.row_stride, b.col_stride, c.row_stride, c.col_stride},
          data_type_of<T>(),
          data_type_of<C>(),
          accumulate};
}

// Float copies of the matrices of one product; the memory lives as long as the process, as the plans do.
std::vector<float>& float_copy(size_t which) {
  static std::array<std::vector<float>, 3> copies;
  return copies[which];
}

// A view of `copy` with the shape of `m` and its order of memory, but without its gaps.
template <class T>
MatrixView<float> dense_view(const MatrixView<T>& m, std::vector<float>& copy) {
  if (copy.size() < static_cast<size_t>(m.rows * m.cols)) copy.resize(static_cast<size_t>(m.rows * m.cols));
  const bool by_rows = m.col_stride == 1;
  return {copy.data(), m.rows, m.cols, by_rows ? m.cols : 1, by_rows ? 1 : m.rows};
}

// The matrix as lines of consecutive elements: its rows, or its columns where those are consecutive.
template <class T>
struct Lines {
  explicit Lines(const MatrixView<T>& m)
      : data(m.data),
        count(m.col_stride == 1 ? m.rows : m.cols),
        length(m.col_stride == 1 ? m.cols : m.rows),
        stride(m.col_stride == 1 ? m.row_stride : m.col_stride) {}
  T* data;
  int64_t count, length, stride;
};

template <class T>
MatrixView<float> widened(const MatrixView<T>& m, std::vector<float>& copy) {
  const MatrixView<float> wide = dense_view(m, copy);
  const Lines<T> lines(m);
  if (lines.stride == lines.length) {
    widen_all<std::remove_const_t<T>>(lines.count * lines.length, lines.data, wide.data);
    return wide;
  }
  for (int64_t i = 0; i < lines.count; ++i)
    widen_all<std::remove_const_t<T>>(lines.length, lines.data + i * lines.stride, wide.data + i * lines.length);
  return wide;
}

template <class T, class C>
void matmul(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<C>& c, bool accumulate);

// Products of 16-bit numbers on a CPU without instructions for them: the same inputs, multiplied in float.
template <class T, class C>
void matmul_widened(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<C>& c,
                    bool accumulate) {
  const auto wide_a = read_only(widened(a, float_copy(0))), wide_b = read_only(widened(b, float_copy(1)));
  if constexpr (std::is_same_v<C, float>) {
    matmul(wide_a, wide_b, c, accumulate);
  } else {
    const MatrixView<float> wide_c = accumulate ? widened(c, float_copy(2)) : dense_view(c, float_copy(2));
    matmul(wide_a, wide_b, wide_c, accumulate);
    for (int64_t r = 0; r < c.rows; ++r)
      cpu_ops<C>().convert(c.cols, wide_c.data + r * c.cols, c.data + r * c.row_stride);
  }
}

// Lines [first, first + count) of the longer side of a product: its rows, or its columns.
struct Tile {
  int64_t first, count;
};

// Each thread's share in two tiles, so that one thread can take over what another has not begun; fewer where a tile
// would be so small that reading the other operand takes longer than multiplying.
std::vector<Tile> cut_tiles(int64_t lines) {
  constexpr int64_t k_min = 128, k_multiple = 16;
  const int64_t threads = thread_count(), wanted = threads == 1 ? 1 : 2 * threads;
  const int64_t tiles = std::clamp<int64_t>(lines / k_min, 1, wanted);
  const int64_t length = ((lines + tiles - 1) / tiles + k_multiple - 1) / k_multiple * k_multiple;
  std::vector<Tile> cut;
  for (int64_t first = 0; first < lines; first += length) cut.push_back({first, std::min(length, lines - first)});
  return cut;
}

template <class T>
MatrixView<T> rows_of(const MatrixView<T>& m, const Tile& tile) {
  return {m.data + tile.first * m.row_stride, tile.count, m.cols, m.row_stride, m.col_stride};
}
template <class T>
MatrixView<T> columns_of(const MatrixView<T>& m, const Tile& tile) {
  return {m.data + tile.first * m.col_stride, m.rows, tile.count, m.row_stride, m.col_stride};
}

// False where oneDNN has no kernel.
template <class T, class C>
bool multiply_tiles(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<C>& c,
                    bool accumulate) {
  const bool by_rows = c.rows >= c.cols;
  const std::vector<Tile> tiles = cut_tiles(by_rows ? c.rows : c.cols);
  const auto left = [&](const Tile& tile) { return by_rows ? rows_of(a, tile) : a; };
  const auto right = [&](const Tile& tile) { return by_rows ? b : columns_of(b, tile); };
  const auto product = [&](const Tile& tile) { return by_rows ? rows_of(c, tile) : columns_of(c, tile); };
  const auto plan_of = [&](const Tile& tile) -> const std::optional<Plan>& {
    return plan_cache().plan_for(describe(left(tile), right(tile), product(tile), accumulate));
  };
  const auto &plan = plan_of(tiles.front()), &plan_of_last = plan_of(tiles.back());  // all but the last are alike
  if (!plan || !plan_of_last) return false;
  parallel_each(std::ssize(tiles), [&](int64_t i) {
    const Tile& tile = tiles[static_cast<size_t>(i)];
    const auto& fitting = i + 1 < std::ssize(tiles) ? plan : plan_of_last;
    execute(*fitting, raw(left(tile).data), raw(right(tile).data), product(tile).data);
  });
  return true;
}

template <class T, class C>
void matmul(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<C>& c, bool accumulate) {
  CHECK(c.col_stride == 1 && a.cols == b.rows && a.rows == c.rows && b.cols == c.cols);
  if (c.rows == 0 || c.cols == 0) return;
  if (a.cols == 0) {  // a sum of nothing
    for (int64_t r = 0; r < c.rows && !accumulate; ++r) std::fill_n(c.data + r * c.row_stride, c.cols, C{});
    return;
  }
  if constexpr (std::is_same_v<T, bf16>)
    if (has_bf16_pairs() && !(accumulate && std::is_same_v<C, bf16>)) return multiply_bf16<C>(a, b, c, accumulate);
  if constexpr (std::is_same_v<T, float>)
    if (!float_product_instructions().empty()) return multiply_float(a, b, c, accumulate);
  CHECK(!a.in_blocks && !b.in_blocks);
  if (multiply_tiles(a, b, c, accumulate)) return;
  if constexpr (!std::is_same_v<T, float>)
    matmul_widened(a, b, c, accumulate);
  else
    CHECK(!"oneDNN multiplies floats on every CPU");
}

double matmul_wide_squares(const MatrixView<const bf16>& a, const MatrixView<const bf16>& b, const MatrixView<float>& c,
                           bool accumulate) {
  CHECK(c.col_stride == 1 && a.cols == b.rows && a.rows == c.rows && b.cols == c.cols);
  double squares = 0;
  multiply_bf16<float>(a, b, c, accumulate, &squares);
  return squares;
}

template <class T>
void matmul_fused(const MatrixView<const T>& a, const MatrixView<const T>& b, const Epilogue<T>& epilogue,
                  const MatrixView<T>& c) {
  if constexpr (std::is_same_v<T, bf16>)
    if (has_amx() && a.cols > 0 && c.rows > 0 && c.cols > 0 && can_multiply_by_amx(epilogue, b.cols))
      return multiply_bf16(a, b, epilogue, c);
  matmul_fused_from_parts(cpu_ops<T>(), a, b, epilogue, c);
}

template <class T>
void matmul_with_row_sums(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<Accum<T>>& c,
                          bool accumulate, Accum<T>* row_sums) {
  matmul_with_row_sums_from_parts<T>(cpu_ops<T>(), a, b, {c, accumulate, row_sums});
}

// Whether oneDNN multiplies such numbers here, rather than ours in float.
bool stays_in_16_bits(Precision precision) {
  if (precision != Precision::bf16 && precision != Precision::fp16) return false;
  const DataType type = precision == Precision::bf16 ? DataType::bf16 : DataType::f16;
  constexpr int64_t k_size = 64;
  return make_plan({{k_size, k_size, k_size}, {k_size, 1, k_size, 1, k_size, 1}, type, type, false}).has_value();
}

}  // namespace

std::string product_kernels(Precision precision) {
  if (precision == Precision::bf16 && has_amx()) return "own, AMX";
  if (precision == Precision::bf16 && has_bf16_pairs()) return "own, AVX512-BF16";
  const std::string_view own = float_product_instructions();
  if (!own.empty() && !stays_in_16_bits(precision)) return fmt::format("own, {}", own);
  const std::string limit = instruction_limit();
  return limit.empty() ? "oneDNN" : fmt::format("oneDNN, at most {}", printable(limit));
}

std::map<std::string, std::string> library_versions() {
  return {{"onednn", fmt::format("{}.{}.{}", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH)}};
}

void set_cpu_ops(OpsByFormat<MatmulOps>& ops) {
  ops.set_fast([]<class T>(MatmulOps<T>& fast) { fast = {matmul, matmul, matmul_fused, matmul_with_row_sums}; });
  ops.f64 = {reference::matmul, reference::matmul, reference::matmul_fused, matmul_with_row_sums};
  if (!has_amx()) return;
  ops.bfloat16.fused_gelu_multiple = ops.bfloat16.fused_swiglu_multiple = k_activation_multiple;
  ops.bfloat16.activate_kept = activate_kept_by_amx;
  ops.bfloat16.has_blocks = ops.bfloat16.keeps_slopes = true;
  ops.bfloat16.matmul_wide_squares = matmul_wide_squares;
}

}  // namespace tprimat::engine
