// What watching a run costs: the processor time of this whole process, which does nothing but sample, as a share of one
// core. The GPUs are eight stand-ins (tests/fakes), so the time inside a real driver is not in it: give the real
// library to have it in.
//   bench_sampler_cost [LIBRARY [SECONDS]]
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "telemetry/gpu_libraries.h"
#include "telemetry/sampler.h"
#include "telemetry/sensors.h"

namespace tprimat {
namespace {

double process_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int measure(const char* library, double seconds) {
  ::setenv("FAKE_GPU_COUNT", "8", 0);
  OpenedLibrary opened = open_nvml(library);
  if (!opened.library) {
    fmt::print(stderr, "{}: {}\n", library, opened.refusal.empty() ? "is not there" : opened.refusal);
    return 4;
  }
  const double before = engine::process_cpu_seconds();
  const auto start = SteadyClock::now();
  Sampler sampler(open_sensors({::getpid(), 1, {std::move(opened.library)}}));
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const std::vector<SensorTrace> traces = sampler.stop();
  const double taken = engine::process_cpu_seconds() - before, passed = seconds_since(start);
  size_t fewest = SIZE_MAX, most = 0;
  for (const SensorTrace& trace : traces) {
    fewest = std::min(fewest, trace.readings.size());
    most = std::max(most, trace.readings.size());
  }
  fmt::print("{} sensors, {:.1f} to {:.1f} readings a second of each, {:.3f} % of one core\n", traces.size(),
             static_cast<double>(fewest) / passed, static_cast<double>(most) / passed, 100.0 * taken / passed);
  return 0;
}

}  // namespace
}  // namespace tprimat

int main(int argc, char** argv) {
  const double seconds = argc > 2 ? std::atof(argv[2]) : 60.0;
  return tprimat::engine::measure(argc > 1 ? argv[1] : FAKE_NVML, seconds);
}
