#include "ops/matmul.h"

#include <array>
#include <dnnl.hpp>
#include <map>
#include <optional>
#include <vector>

#include "base/check.h"
#include "device/parallel.h"
#include "ops/elementwise.h"
#include "ops/reference/matmul.h"

namespace tprimat {
namespace {

using DataType = dnnl::memory::data_type;

template <class T>
constexpr DataType data_type_of() {
  return std::is_same_v<T, bf16> ? DataType::bf16 : DataType::f32;
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

// Nothing where oneDNN has no kernel for this problem on this CPU (bf16 below AVX-512).
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

// A dense float copy in the memory order of `m`.
std::vector<float> widened(const MatrixView<const bf16>& m) {
  const int64_t count = (m.rows - 1) * m.row_stride + (m.cols - 1) * m.col_stride + 1;
  std::vector<float> copy(static_cast<size_t>(count));
  parallel_ranges(count, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) copy[static_cast<size_t>(i)] = to_float(m.data[i]);
  });
  return copy;
}

// bf16 products on a CPU without bf16 instructions: the same inputs, multiplied in float.
template <class C>
void matmul_widened(const MatrixView<const bf16>& a, const MatrixView<const bf16>& b, const MatrixView<C>& c,
                    bool accumulate) {
  const std::vector<float> wide_a = widened(a), wide_b = widened(b);
  const MatrixView<const float> view_a{wide_a.data(), a.rows, a.cols, a.row_stride, a.col_stride};
  const MatrixView<const float> view_b{wide_b.data(), b.rows, b.cols, b.row_stride, b.col_stride};
  if constexpr (std::is_same_v<C, float>) {
    matmul<float, float>(view_a, view_b, c, accumulate);
  } else {
    std::vector<float> wide_c = accumulate
                                    ? widened({c.data, c.rows, c.cols, c.row_stride, c.col_stride})
                                    : std::vector<float>(static_cast<size_t>((c.rows - 1) * c.row_stride + c.cols));
    matmul<float, float>(view_a, view_b, {wide_c.data(), c.rows, c.cols, c.row_stride, c.col_stride}, accumulate);
    for (int64_t r = 0; r < c.rows; ++r)
      convert<bf16>(c.cols, wide_c.data() + r * c.row_stride, c.data + r * c.row_stride);
  }
}

template <class T, class C>
void matmul_planned(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<C>& c,
                    bool accumulate) {
  CHECK(c.col_stride == 1);
  const std::optional<Plan>& plan = plan_cache().plan_for(describe(a, b, c, accumulate));
  if (plan) return execute(*plan, raw(a.data), raw(b.data), c.data);
  if constexpr (std::is_same_v<T, bf16>)
    matmul_widened(a, b, c, accumulate);
  else
    CHECK(!"oneDNN multiplies floats on every CPU");
}

}  // namespace

template <>
void matmul<float, float>(const MatrixView<const float>& a, const MatrixView<const float>& b,
                          const MatrixView<float>& c, bool accumulate) {
  matmul_planned(a, b, c, accumulate);
}
template <>
void matmul<bf16, bf16>(const MatrixView<const bf16>& a, const MatrixView<const bf16>& b, const MatrixView<bf16>& c,
                        bool accumulate) {
  matmul_planned(a, b, c, accumulate);
}
template <>
void matmul<bf16, float>(const MatrixView<const bf16>& a, const MatrixView<const bf16>& b, const MatrixView<float>& c,
                         bool accumulate) {
  matmul_planned(a, b, c, accumulate);
}
template <>
void matmul<double, double>(const MatrixView<const double>& a, const MatrixView<const double>& b,
                            const MatrixView<double>& c, bool accumulate) {
  reference::matmul(a, b, c, accumulate);
}

}  // namespace tprimat
