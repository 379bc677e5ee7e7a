#include "ops/matmul.h"

#include <array>
#include <dnnl.hpp>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "ops/cpu/bf16_panels.h"
#include "ops/cpu/bf16_product.h"
#include "ops/elementwise.h"
#include "ops/reference/matmul.h"

namespace tprimat {
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

dnnl::stream& cpu_stream() {
  static dnnl::stream stream(cpu_engine());
  return stream;
}

// Nothing where oneDNN has no kernel for this problem on this CPU (bf16 below AVX-512, f16 without AVX512-FP16), or
// only its plain reference.
std::optional<Plan> make_plan(const Problem2d& problem) {
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
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), attributes, cpu_engine());
    if (std::string_view(description.impl_info_str()).starts_with("ref")) return std::nullopt;
    return Plan{description, dnnl::matmul(description)};
  } catch (const dnnl::error& error) {
    CHECK(error.status == dnnl_unimplemented);
    return std::nullopt;
  }
}

// Plans and scratch memory live as long as the process: a training repeats the same few dozen products.
class PlanCache {
 public:
  const std::optional<Plan>& plan_for(const Problem2d& problem) {
    const auto found = plans_.find(problem);
    if (found != plans_.end()) return found->second;
    return plans_.emplace(problem, make_plan(problem)).first->second;
  }
  void* scratch(size_t bytes) {
    if (scratch_.size() < bytes) scratch_.resize(bytes);
    return scratch_.data();
  }

 private:
  std::map<Problem2d, std::optional<Plan>> plans_;
  std::vector<std::byte> scratch_;
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
  const auto& description = plan.description;
  const dnnl::memory scratch(description.scratchpad_desc(), cpu_engine(),
                             plan_cache().scratch(description.scratchpad_desc().get_size()));
  plan.primitive.execute(cpu_stream(), {{DNNL_ARG_SRC, dnnl::memory(description.src_desc(), cpu_engine(), a)},
                                        {DNNL_ARG_WEIGHTS, dnnl::memory(description.weights_desc(), cpu_engine(), b)},
                                        {DNNL_ARG_DST, dnnl::memory(description.dst_desc(), cpu_engine(), c)},
                                        {DNNL_ARG_SCRATCHPAD, scratch}});
  cpu_stream().wait();
}

template <class T, class C>
Problem2d describe(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<C>& c,
                   bool accumulate) {
  CHECK(a.cols == b.rows && a.rows == c.rows && b.cols == c.cols);
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

MatrixView<const float> read_only(const MatrixView<float>& m) {
  return {m.data, m.rows, m.cols, m.row_stride, m.col_stride};
}

// Products of 16-bit numbers on a CPU without instructions for them: the same inputs, multiplied in float.
template <class T, class C>
void matmul_widened(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<C>& c,
                    bool accumulate) {
  const auto wide_a = read_only(widened(a, float_copy(0))), wide_b = read_only(widened(b, float_copy(1)));
  if constexpr (std::is_same_v<C, float>) {
    matmul<float, float>(wide_a, wide_b, c, accumulate);
  } else {
    const MatrixView<float> wide_c = accumulate ? widened(c, float_copy(2)) : dense_view(c, float_copy(2));
    matmul<float, float>(wide_a, wide_b, wide_c, accumulate);
    for (int64_t r = 0; r < c.rows; ++r) convert<C>(c.cols, wide_c.data + r * c.cols, c.data + r * c.row_stride);
  }
}

template <class T, class C>
void matmul_planned(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<C>& c,
                    bool accumulate) {
  CHECK(c.col_stride == 1);
  if (c.rows == 0 || c.cols == 0) return;
  if constexpr (std::is_same_v<T, bf16>)
    if (has_bf16_pairs() && !(accumulate && std::is_same_v<C, bf16>)) return multiply_bf16<C>(a, b, c, accumulate);
  const std::optional<Plan>& plan = plan_cache().plan_for(describe(a, b, c, accumulate));
  if (plan) return execute(*plan, raw(a.data), raw(b.data), c.data);
  if constexpr (!std::is_same_v<T, float>)
    matmul_widened(a, b, c, accumulate);
  else
    CHECK(!"oneDNN multiplies floats on every CPU");
}

}  // namespace

#define TPRIMAT_MATMUL(T, C)                                                                            \
  template <>                                                                                           \
  void matmul<T, C>(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<C>& c, \
                    bool accumulate) {                                                                  \
    matmul_planned(a, b, c, accumulate);                                                                \
  }
TPRIMAT_MATMUL(float, float)
TPRIMAT_MATMUL(bf16, bf16)
TPRIMAT_MATMUL(bf16, float)
TPRIMAT_MATMUL(f16, f16)
TPRIMAT_MATMUL(f16, float)
#undef TPRIMAT_MATMUL
template <>
void matmul<double, double>(const MatrixView<const double>& a, const MatrixView<const double>& b,
                            const MatrixView<double>& c, bool accumulate) {
  reference::matmul(a, b, c, accumulate);
}

}  // namespace tprimat
