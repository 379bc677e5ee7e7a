#include "probe/memory_probe.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "device/arena.h"
#include "device/parallel.h"
#include "telemetry/cpu_facts.h"

namespace tprimat {
namespace {

// One cache line; the compiler cuts it into whatever vectors the CPU has.
using Line = double __attribute__((vector_size(64)));
constexpr int64_t k_line_bytes = 64;
constexpr int64_t k_unroll = 4;
constexpr double k_smallest_buffer = 1e9;  // bytes
constexpr double k_least_seconds = 0.8;    // per kind
constexpr int k_least_passes = 3;

double free_memory_bytes() {
  const double free = static_cast<double>(::sysconf(_SC_AVPHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return std::min(free, read_cgroup_limits("/").memory_bytes.value_or(free));
}

int64_t choose_lines() {
  const auto cache = static_cast<double>(std::max(0L, ::sysconf(_SC_LEVEL3_CACHE_SIZE)));
  const double bytes = std::min(std::max(k_smallest_buffer, 4 * cache), free_memory_bytes() / 4);
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

void triad_lines(Line* to, const Line* left, const Line* right, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = left[i] + 0.5 * right[i];
}

// Bytes per second of the fastest pass.
template <class Pass>
double measure_passes(double bytes, Pass&& pass) {
  double fastest = 0;
  const auto start = SteadyClock::now();
  for (int done = 0; done < k_least_passes || seconds_since(start) < k_least_seconds; ++done) {
    const auto pass_start = SteadyClock::now();
    pass();
    fastest = std::max(fastest, bytes / seconds_since(pass_start));
  }
  return fastest;
}

double measure_read(const Line* lines, int64_t count) {
  std::vector<double> sums(static_cast<size_t>(thread_count()));
  const double rate = measure_passes(static_cast<double>(count * k_line_bytes), [&] {
    parallel_ranges(count / k_unroll, [&](int64_t begin, int64_t end, int thread) {
      sums[static_cast<size_t>(thread)] = sum_lines(lines + begin * k_unroll, (end - begin) * k_unroll);
    });
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  CHECK(total == static_cast<double>(count * 8));  // every element is 1, and every one was read
  return rate;
}

double measure_triad(Line* lines, int64_t count) {
  const int64_t third = count / 3;
  return measure_passes(static_cast<double>(3 * third * k_line_bytes), [&] {
    parallel_ranges(third, [&](int64_t begin, int64_t end, int) {
      triad_lines(lines + begin, lines + third + begin, lines + 2 * third + begin, end - begin);
    });
  });
}

}  // namespace

MemoryBandwidth measure_memory_bandwidth(int threads) {
  set_thread_count(threads);
  const int64_t count = choose_lines();
  ArenaPlan plan;
  const Slot<std::byte> buffer = plan.reserve<std::byte>("probe", count * k_line_bytes);
  const Arena arena(plan);
  Line* const lines = reinterpret_cast<Line*>(arena.at(buffer));
  parallel_ranges(count, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) lines[i] = Line{1, 1, 1, 1, 1, 1, 1, 1};
  });
  MemoryBandwidth result;
  result.buffer_bytes = count * k_line_bytes;
  result.read_bytes_per_second = measure_read(lines, count);
  result.triad_bytes_per_second = measure_triad(lines, count);
  result.how = fmt::format(
      "fastest pass over {:.2f} GB, at least {} passes and {} s of each kind, huge pages where the system gives them, "
      "{} threads",
      static_cast<double>(result.buffer_bytes) / 1e9, k_least_passes, k_least_seconds, thread_count());
  return result;
}

}  // namespace tprimat
