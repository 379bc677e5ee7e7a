// Products of bf16 or float: ours (ops/cpu/bf16_product.h, ops/cpu/float_product.h) beside oneDNN's on the same
// matrices, taking turns, so that a busy or throttled machine slows both alike. The shapes are those of a 124 M model
// over 2048 tokens (third argument); the head's always over 1024.
//   bench_product [rounds [bf16|fp32 [tokens]]]
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "device/arena.h"
#include "device/parallel.h"
#include "ops/cpu/bf16_panels.h"
#include "ops/cpu/float_product.h"
#include "ops/op_table.h"
#include "stats/descriptive.h"

namespace tprimat {
namespace {

using engine::bf16;

enum class Pass { forward, input, weight };
struct Shape {
  const char* name;
  Pass pass;
  int64_t m, n, k;
};
// rows×outputs×inputs of the layer, as each of its three products sees it.
std::vector<Shape> products_of(const char* name, int64_t rows, int64_t outputs, int64_t inputs) {
  return {{name, Pass::forward, rows, outputs, inputs},
          {name, Pass::input, rows, inputs, outputs},
          {name, Pass::weight, outputs, inputs, rows}};
}

// The operands as training stores them; the gradient of a weight is added to float, the others are written as T.
template <class T>
struct Operands {
  engine::MatrixView<const T> a, b;
  engine::MatrixView<float> sum;
  engine::MatrixView<T> product;
};
template <class T>
Operands<T> operands_of(const Shape& s, T* a, T* b, float* c) {
  const bool a_transposed = s.pass == Pass::weight, b_transposed = s.pass == Pass::forward;
  const engine::MatrixView<const T> left =
      a_transposed ? engine::transposed(engine::matrix<const T>(a, s.k, s.m)) : engine::matrix<const T>(a, s.m, s.k);
  const engine::MatrixView<const T> right =
      b_transposed ? engine::transposed(engine::matrix<const T>(b, s.n, s.k)) : engine::matrix<const T>(b, s.k, s.n);
  return {left, right, engine::matrix(c, s.m, s.n), engine::matrix(reinterpret_cast<T*>(c), s.m, s.n)};
}

template <class T>
class OneDnn {
 public:
  OneDnn(const Operands<T>& o, bool adds) : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using Format = dnnl::memory::data_type;
    constexpr Format k_format = std::is_same_v<T, bf16> ? Format::bf16 : Format::f32;
    const auto describe = [](const auto& m, Format format) {
      return dnnl::memory::desc({m.rows, m.cols}, format, {m.row_stride, m.col_stride});
    };
    const auto a = describe(o.a, k_format), b = describe(o.b, k_format),
               c = describe(o.sum, adds ? Format::f32 : k_format);
    dnnl::primitive_attr attributes;
    dnnl::post_ops add;
    if (adds) add.append_sum(1.0f), attributes.set_post_ops(add);
    product_ = dnnl::matmul(dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, c), attributes, engine_));
    arguments_ = {{DNNL_ARG_SRC, dnnl::memory(a, engine_, const_cast<T*>(o.a.data))},
                  {DNNL_ARG_WEIGHTS, dnnl::memory(b, engine_, const_cast<T*>(o.b.data))},
                  {DNNL_ARG_DST, dnnl::memory(c, engine_, o.sum.data)}};
  }
  void run() {
    product_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul product_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

template <class Work>
double seconds_of(const Work& work) {
  const auto start = SteadyClock::now();
  work();
  return seconds_since(start);
}

// The clock of a processor depends on the numbers that it multiplies.
template <class T>
void fill_normal(T* to, int64_t count) {
  engine::cpu_ops<T>().draw_normal(count, {.stddev = 1.0, .stream = 42, .cols = count, .whole_cols = count}, to);
}

// During training, a product's operands and result have mostly left the caches.
class OtherMemory {
 public:
  OtherMemory() : numbers_(size_t{192} << 20, 1) {}  // 768 MB, more than the caches of a processor
  void read() {
    constexpr int64_t k_line = 64 / sizeof(int), k_parts = 64;
    const auto part = static_cast<int64_t>(numbers_.size()) / k_parts;
    std::atomic<int64_t> sum = 0;
    engine::parallel_each(k_parts, [&](int64_t i) {
      int64_t of_part = 0;
      for (int64_t at = i * part; at < (i + 1) * part; at += k_line) of_part += numbers_[static_cast<size_t>(at)];
      sum += of_part;
    });
    CHECK(sum == static_cast<int64_t>(numbers_.size()) / k_line);
  }

 private:
  std::vector<int> numbers_;
};

template <class T>
void measure(const Shape& s, int rounds, OtherMemory& other_memory) {
  ArenaPlan plan;
  const auto a = plan.reserve<T>(Component::workspace, s.m * s.k), b = plan.reserve<T>(Component::workspace, s.k * s.n);
  const auto c = plan.reserve<float>(Component::workspace, s.m * s.n);
  const engine::Arena arena(plan);
  fill_normal(arena.at(a), s.m * s.k);
  fill_normal(arena.at(b), s.k * s.n);
  const Operands<T> o = operands_of(s, arena.at(a), arena.at(b), arena.at(c));
  const bool adds = s.pass == Pass::weight;
  OneDnn<T> peer(o, adds);
  const auto ours = [&] {
    if (adds)
      engine::cpu_ops<T>().matmul_wide(o.a, o.b, o.sum, true);
    else
      engine::cpu_ops<T>().matmul(o.a, o.b, o.product, false);
  };
  std::vector<double> own, theirs, ratios;
  for (int round = -1; round < rounds; ++round) {  // the first warms both up
    other_memory.read();
    const double mine = seconds_of(ours);
    other_memory.read();
    const double other = seconds_of([&] { peer.run(); });
    if (round < 0) continue;
    own.push_back(mine), theirs.push_back(other), ratios.push_back(other / mine);
  }
  const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const char* const passes[] = {"forward", "input", "weight"};
  fmt::print("{:8} {:8} {:>6} x {:>6} x {:>6}  {:7.0f} {:7.0f}  {:7.0f} {:7.0f}  {:6.2f}\n", s.name,
             passes[static_cast<int>(s.pass)], s.m, s.n, s.k, flops / median(own) / 1e9,
             flops / std::ranges::min(own) / 1e9, flops / median(theirs) / 1e9, flops / std::ranges::min(theirs) / 1e9,
             median(ratios));
}

template <class T>
int measure_all(int rounds, Precision precision, int64_t tokens) {
  OtherMemory other_memory;
  fmt::print("ours: {}; GFLOP/s, {} threads\n", engine::product_kernels(precision), engine::thread_count());
  fmt::print("{:45}{:^15}  {:^15}  {:>6}\n", "", "ours", "oneDNN", "ratio");
  fmt::print("layer    product       m x      n x      k   median fastest   median fastest  median\n");
  for (const auto& [name, rows, outputs, inputs] : {std::tuple{"qkv", tokens, 2304, 768},
                                                    {"out", tokens, 768, 768},
                                                    {"gate_up", tokens, 4096, 768},
                                                    {"down", tokens, 768, 2048},
                                                    {"head", 1024, 50257, 768}})
    for (const Shape& shape : products_of(name, rows, outputs, inputs)) measure<T>(shape, rounds, other_memory);
  return 0;
}

}  // namespace
}  // namespace tprimat

int main(int argc, char** argv) {
  using namespace tprimat;
  // OpenMP's threads, which oneDNN uses, would spin after each product and take a processor from ours.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) {
    setenv("OMP_WAIT_POLICY", "passive", 1);
    execv("/proc/self/exe", argv);  // the library reads it once, when it is loaded
  }
  const bool is_bf16 = argc < 3 || std::strcmp(argv[2], "fp32") != 0;
  if (is_bf16 && !engine::has_bf16_pairs())
    return fmt::print(stderr, "this CPU has no AVX512-BF16: oneDNN multiplies bf16, or nobody does\n"), 1;
  if (!is_bf16 && engine::float_product_instructions().empty())
    return fmt::print(stderr, "this CPU has no fused multiply-add: oneDNN multiplies float\n"), 1;
  engine::set_thread_count(0);
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 15;
  const int64_t tokens = argc > 3 ? std::max(1, std::atoi(argv[3])) : 2048;
  return is_bf16 ? measure_all<bf16>(rounds, Precision::bf16, tokens)
                 : measure_all<float>(rounds, Precision::fp32, tokens);
}
