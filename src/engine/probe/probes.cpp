#include "probe/probes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "device/arena.h"
#include "device/parallel.h"
#include "telemetry/machine.h"

namespace tprimat::engine {
namespace {

// One cache line; the compiler cuts it into whatever vectors the CPU has.
using Line = double __attribute__((vector_size(64)));
constexpr int64_t k_line_bytes = 64;
constexpr int64_t k_unroll = 4;
constexpr double k_smallest_buffer = 1e9;  // bytes
// A window is one pass.
constexpr MeasuringRule k_memory_rule = {
    .warm_seconds = 0.0, .window_seconds = 0.0, .longest_seconds = 0.5, .noise = 0.01, .least_windows = 5};

int64_t choose_lines() {
  const auto cache = static_cast<double>(std::max(0L, ::sysconf(_SC_LEVEL3_CACHE_SIZE)));
  const double wanted = std::max(k_smallest_buffer, 4 * cache);
  const double bytes = std::min(wanted, available_memory_bytes("/").value_or(wanted) / 4);
  const auto lines = static_cast<int64_t>(bytes) / k_line_bytes;
  return std::max<int64_t>(lines / (3 * k_unroll), 1) * 3 * k_unroll;  // three arrays of whole blocks
}

// Four sums, so that no load waits for an addition.
double sum_lines(const Line* lines, int64_t count) {
  Line sum0 = {}, sum1 = {}, sum2 = {}, sum3 = {};
  for (int64_t i = 0; i < count; i += k_unroll) {
    sum0 += lines[i];
    sum1 += lines[i + 1];
    sum2 += lines[i + 2];
    sum3 += lines[i + 3];
  }
  const Line total = (sum0 + sum1) + (sum2 + sum3);
  double sum = 0;
  for (int lane = 0; lane < 8; ++lane) sum += total[lane];
  return sum;
}

// The arrays a, b and c, one after the other, `count` lines each; every element was 1 to begin with.
struct Arrays {
  Line *a, *b, *c;
  int64_t count;
};

// What all threads together do in one pass, each with its own range of lines.
using Pass = void (*)(const Arrays&, int64_t begin, int64_t end);

void copy_lines(const Arrays& x, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) x.c[i] = x.a[i];
}
void scale_lines(const Arrays& x, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) x.b[i] = 0.5 * x.c[i];
}
void add_lines(const Arrays& x, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) x.c[i] = x.a[i] + x.b[i];
}
void triad_lines(const Arrays& x, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) x.a[i] = x.b[i] + 0.5 * x.c[i];
}

struct StreamKind {
  Pass pass;
  int64_t arrays;  // read or written
};
StreamKind stream_kind(StreamKernel kind) {
  switch (kind) {
    case StreamKernel::copy: return {copy_lines, 2};
    case StreamKernel::scale: return {scale_lines, 2};
    case StreamKernel::add: return {add_lines, 3};
    case StreamKernel::triad: return {triad_lines, 3};
    case StreamKernel::read: break;
  }
  CHECK(!"a kind that writes");
}

template <class Work>
MemoryRate measure_passes(StreamKernel kind, int64_t lines, Work&& work) {
  const Measured measured = measure(k_memory_rule, thread_count(), work);
  return {kind, static_cast<double>(lines * k_line_bytes) / measured.fastest_seconds, measured};
}

MemoryRate measure_read(const Arrays& arrays) {
  std::vector<double> sums(static_cast<size_t>(thread_count()));
  const int64_t lines = 3 * arrays.count;
  const MemoryRate rate = measure_passes(StreamKernel::read, lines, [&] {
    parallel_ranges(lines / k_unroll, [&](int64_t begin, int64_t end, int thread) {
      sums[static_cast<size_t>(thread)] = sum_lines(arrays.a + begin * k_unroll, (end - begin) * k_unroll);
    });
  });
  CHECK(std::isfinite(std::accumulate(sums.begin(), sums.end(), 0.0)));  // so that nothing is left out
  return rate;
}

MemoryRate measure_kind(StreamKernel kind, const Arrays& arrays) {
  if (kind == StreamKernel::read) return measure_read(arrays);
  const StreamKind stream = stream_kind(kind);
  return measure_passes(kind, stream.arrays * arrays.count, [&] {
    parallel_ranges(arrays.count, [&](int64_t begin, int64_t end) { stream.pass(arrays, begin, end); });
  });
}

std::string cpu_name() { return read_cpu_facts("/", count_affinity()).model_name; }

}  // namespace

MemoryBandwidth measure_memory_bandwidth(int threads, const std::vector<StreamKernel>& kinds) {
  set_thread_count(threads);
  const int64_t count = choose_lines();
  ArenaPlan plan;
  const Slot<std::byte> buffer = plan.reserve<std::byte>(Component::workspace, count * k_line_bytes);
  const Arena arena(plan);
  Line* const lines = reinterpret_cast<Line*>(arena.at(buffer));
  parallel_ranges(count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) lines[i] = Line{1, 1, 1, 1, 1, 1, 1, 1};
  });
  const int64_t third = count / 3;
  MemoryBandwidth result;
  result.buffer_bytes = count * k_line_bytes;
  for (const StreamKernel kind : kinds)
    result.kinds.push_back(measure_kind(kind, {lines, lines + third, lines + 2 * third, third}));
  result.how = fmt::format(
      "fastest pass over {:.2f} GB, of at least {} passes, until they agree to {} % or for {} s of each kind; huge "
      "pages "
      "where the system gives them, {} threads",
      static_cast<double>(result.buffer_bytes) / 1e9, k_memory_rule.least_windows, k_memory_rule.noise * 100,
      k_memory_rule.longest_seconds, thread_count());
  return result;
}

MemoryBandwidth measure_memory_bandwidth(int threads) {
  return measure_memory_bandwidth(
      threads, {StreamKernel::read, StreamKernel::copy, StreamKernel::scale, StreamKernel::add, StreamKernel::triad});
}

namespace {

ProbeReport describe_processor() {
  ProbeReport report;
  report.cpu = cpu_name();
  report.threads = thread_count();
  const MachineFacts machine = read_machine({});
  if (machine.memory_bytes)
    report.memory_bytes = std::min(*machine.memory_bytes, machine.memory_limit_bytes.value_or(*machine.memory_bytes));
  return report;
}

}  // namespace

ProbeReport run_cpu_probes(int threads) {
  set_thread_count(threads);
  ProbeReport report = describe_processor();
  for (const auto& [format, name] : EnumNames<ProductFormat>::values) {
    if (auto peak = measure_gemm_peak(format, threads))
      report.matmul.push_back(std::move(*peak));
    else
      report.no_instructions.push_back(format);
  }
  report.memory = measure_memory_bandwidth(threads);
  return report;
}

ProbeReport run_peak_probe(const std::vector<Precision>& precisions, int threads) {
  set_thread_count(threads);
  ProbeReport report = describe_processor();
  for (const Precision precision : precisions) {
    auto peak = measure_gemm_peak(precision, threads);
    if (peak && report.find_peak(peak->precision) == nullptr) report.matmul.push_back(std::move(*peak));
  }
  report.memory = measure_memory_bandwidth(threads, {StreamKernel::triad});
  return report;
}

ModelProbeReport run_model_probes(const ModelSpec& model, int64_t tokens, int threads) {
  set_thread_count(threads);
  ModelProbeReport report;
  report.cpu = cpu_name();
  report.threads = thread_count();
  for (const ProductFormat format : {ProductFormat::fp32, ProductFormat::bf16, ProductFormat::fp16}) {
    auto peak = measure_gemm_peak(format, threads);
    if (!peak) continue;
    report.matmul.push_back(std::move(*peak));
    report.models.push_back(*measure_model_products(model, tokens, format, threads));
  }
  return report;
}

}  // namespace tprimat::engine
