#include "probe/gemm_probe.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "device/arena.h"
#include "device/parallel.h"

namespace tprimat {
namespace {

using dnnl::memory;

constexpr double k_window_seconds = 0.1;
constexpr double k_warm_seconds = 0.2;
constexpr int k_windows = 3;  // per shape

struct Shape {
  int64_t m, n, k;
  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};
// Two squares, and the products of an MLP and a head of width 1024 over 2048 tokens.
constexpr Shape k_shapes[] = {
    {1024, 1024, 1024}, {2048, 2048, 2048}, {2048, 4096, 1024}, {2048, 1024, 4096}, {2048, 8192, 1024}};

bool has_bf16_instructions() {
  constexpr auto k_needed = static_cast<int>(dnnl::cpu_isa::avx512_core_bf16);
  return (static_cast<int>(dnnl::get_effective_cpu_isa()) & k_needed) == k_needed;
}

std::optional<memory::data_type> data_type_of(Precision precision) {
  if (precision == Precision::fp32) return memory::data_type::f32;
  if (precision == Precision::bf16 && has_bf16_instructions()) return memory::data_type::bf16;
  return std::nullopt;
}

// Normal numbers, drawn once and repeated: their bits vary enough that no multiplier idles.
std::vector<float> draw_normal() {
  std::mt19937 generator(42);
  std::normal_distribution<float> normal;
  std::vector<float> values((1 << 16) + 7);  // odd, so that rows differ
  for (float& value : values) value = normal(generator);
  return values;
}

void fill_normal(std::byte* to, int64_t count, memory::data_type type) {
  static const std::vector<float> normal = draw_normal();
  for (int64_t i = 0; i < count; ++i) {
    const float value = normal[static_cast<size_t>(i) % normal.size()];
    if (type == memory::data_type::f32) {
      std::memcpy(to + i * 4, &value, 4);
    } else {
      const auto upper = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
      std::memcpy(to + i * 2, &upper, 2);
    }
  }
}

// One product, ready to repeat: input and output row by row, weights in the layout that oneDNN likes best.
class PackedProduct {
 public:
  PackedProduct(const Shape& shape, memory::data_type type)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_), arena_(plan(shape, type)) {
    const memory::desc input({shape.m, shape.k}, type, memory::format_tag::ab);
    const memory::desc weights({shape.k, shape.n}, type, memory::format_tag::ab);
    const memory::desc output({shape.m, shape.n}, type, memory::format_tag::ab);
    dnnl::primitive_attr strict;
    strict.set_fpmath_mode(dnnl::fpmath_mode::strict);  // fp32 stays fp32 whatever the environment says
    const dnnl::matmul::primitive_desc described(
        dnnl::matmul::desc(input, memory::desc({shape.k, shape.n}, type, memory::format_tag::any), output), strict,
        engine_);
    product_ = dnnl::matmul(described);
    memory plain_weights(weights, engine_, arena_.at(weights_));
    memory packed_weights(described.weights_desc(), engine_);
    fill_normal(arena_.at(weights_), shape.k * shape.n, type);
    fill_normal(arena_.at(input_), shape.m * shape.k, type);
    dnnl::reorder(plain_weights, packed_weights).execute(stream_, plain_weights, packed_weights);
    stream_.wait();
    arguments_ = {{DNNL_ARG_SRC, memory(input, engine_, arena_.at(input_))},
                  {DNNL_ARG_WEIGHTS, packed_weights},
                  {DNNL_ARG_DST, memory(output, engine_, arena_.at(output_))}};
  }

  void run() {
    product_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  ArenaPlan plan(const Shape& shape, memory::data_type type) {
    const int64_t width = type == memory::data_type::f32 ? 4 : 2;
    ArenaPlan plan;
    weights_ = plan.reserve<std::byte>("weights", shape.k * shape.n * width);
    input_ = plan.reserve<std::byte>("input", shape.m * shape.k * width);
    output_ = plan.reserve<std::byte>("output", shape.m * shape.n * width);
    return plan;
  }

  Slot<std::byte> weights_, input_, output_;  // before arena_, which is planned from them
  dnnl::engine engine_;
  dnnl::stream stream_;
  Arena arena_;
  dnnl::matmul product_;
  std::unordered_map<int, memory> arguments_;
};

// User and system time of all threads of this process.
double cpu_seconds() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Repeats the product for at least `seconds`.
GemmRate measure_window(PackedProduct& product, const Shape& shape, double seconds) {
  const double cpu_start = cpu_seconds();
  const auto start = SteadyClock::now();
  double elapsed = 0;
  int64_t products = 0;
  while (elapsed < seconds) {
    product.run();
    ++products;
    elapsed = seconds_since(start);
  }
  // Threads that wait for each other inside a product spin, so idle time does not lower the share, only other processes
  // do.
  const double share = (cpu_seconds() - cpu_start) / (elapsed * thread_count());
  return {shape.m, shape.n, shape.k, shape.flops() * static_cast<double>(products) / elapsed, std::min(share, 1.0)};
}

bool is_slower(const GemmRate& a, const GemmRate& b) { return a.flops_per_second < b.flops_per_second; }

GemmRate measure_shape(const Shape& shape, memory::data_type type) {
  PackedProduct product(shape, type);
  product.run();  // pages and code are touched for the first time
  GemmRate fastest;
  for (int window = 0; window < k_windows; ++window)
    fastest = std::max(fastest, measure_window(product, shape, k_window_seconds), is_slower);
  return fastest;
}

std::string describe_rule(const GemmRate& best) {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format(
      "fastest of {} windows of {} s over {} shapes, reached at {} x {} x {}; oneDNN {}.{}.{} with packed weights, "
      "normal "
      "data, {} threads",
      k_windows * std::size(k_shapes), k_window_seconds, std::size(k_shapes), best.m, best.n, best.k, version->major,
      version->minor, version->patch, thread_count());
}

GemmPeak measure_all_shapes(Precision precision, memory::data_type type) {
  PackedProduct warm(k_shapes[0], type);
  measure_window(warm, k_shapes[0], k_warm_seconds);  // clocks rise
  GemmPeak peak;
  peak.precision = precision;
  for (const Shape& shape : k_shapes) peak.shapes.push_back(measure_shape(shape, type));
  const auto best = std::max_element(peak.shapes.begin(), peak.shapes.end(), is_slower);
  peak.flops_per_second = best->flops_per_second;
  peak.cpu_share = best->cpu_share;
  peak.how = describe_rule(*best);
  return peak;
}

}  // namespace

std::optional<GemmPeak> measure_gemm_peak(Precision precision, int threads) {
  const auto type = data_type_of(precision);
  if (!type) return std::nullopt;
  set_thread_count(threads);
  try {
    return measure_all_shapes(precision, *type);
  } catch (const dnnl::error& error) {
    throw Error(Problem{fmt::format("the matrix-product probe failed in oneDNN: {}", error.message), "", ""},
                ExitStatus::work_failed);
  }
}

}  // namespace tprimat
