// Reads a trace again and again: MB/s of its text by the processor time of one thread, for each extent of reading.
//
//   bench_read_trace FILE [ROUNDS]
#include "trace/trace.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <vector>

namespace {

using namespace tprimat::logs;

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

int64_t peak_megabytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

void measure(const std::filesystem::path& file, std::string_view name, TraceContent content, int rounds) {
  std::vector<double> rates;
  Trace trace;
  for (int i = 0; i < rounds; ++i) {
    trace = Trace();
    const double begin = processor_seconds();
    trace = read_trace(file, content);
    rates.push_back(static_cast<double>(std::filesystem::file_size(file)) / (processor_seconds() - begin) / 1e6);
  }
  std::sort(rates.begin(), rates.end());
  fmt::print("{:<12} {:7.0f} MB/s (median of {}, {:.0f} to {:.0f}); {} events, {} kept; peak {} MB\n", name,
             rates[rates.size() / 2], rounds, rates.front(), rates.back(), trace.all_events,
             trace.events.size() + trace.host_events.size(), peak_megabytes());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  measure(argv[1], "gpu", TraceContent::gpu, rounds);
  measure(argv[1], "host", TraceContent::host, rounds);
  measure(argv[1], "everything", TraceContent::everything, rounds);
}
