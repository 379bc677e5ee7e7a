// What it costs to supervise a training: processor time of this program, which follows the training as `tprimat run`
// does, and of the warden beside it, while a stand-in prints 10 000 lines and writes 100 step records each second. A
// second training prints as fast as the pipe takes it.
//
//   bench_supervision [SECONDS] [LINES_PER_SECOND] [STEPS_PER_SECOND]
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/clock.h"
#include "process/process.h"
#include "run/follow.h"
#include "run/reporters.h"
#include "telemetry/sensors.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

struct Load {
  double seconds = 20.0;
  int lines_per_second = 10'000, steps_per_second = 100;
  int64_t flood_megabytes = 0;  // instead of the above
};

// ---- the stand-in ----

constexpr const char* k_line =
    "[default0]:[rank0]: 2026-11-21 12:00:00 step %lld | loss 4.8125 | grad norm 1.25 | 13400 tokens/s/gpu\n";

void print_flood(int64_t megabytes) {
  std::string block;
  while (block.size() < 1'000'000)
    block += "a line of a trainer that prints as fast as anybody can read what it prints\n";
  for (int64_t i = 0; i < megabytes; ++i) std::fwrite(block.data(), 1, block.size(), stdout);
}

// Line by line, as an unbuffered logger does; ten milliseconds at a time.
int train(const Load& load) {
  std::FILE* steps = std::fopen(std::getenv("TPRIMAT_STEPS"), "w");
  if (steps == nullptr) return 1;
  if (load.flood_megabytes > 0) print_flood(load.flood_megabytes);
  const auto start = SteadyClock::now();
  long long lines = 0, done = 0;
  while (load.flood_megabytes == 0 && seconds_since(start) < load.seconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const double now = seconds_since(start);
    for (; static_cast<double>(lines) < now * load.lines_per_second; ++lines) {
      std::printf(k_line, lines);
      std::fflush(stdout);
    }
    for (; static_cast<double>(done) < now * load.steps_per_second; ++done) {
      std::fprintf(steps, "{\"step\": %lld, \"time_seconds\": 0.01, \"loss\": 4.8125, \"learning_rate\": 0.001}\n",
                   done + 1);
      std::fflush(steps);
    }
  }
  return 0;
}

// ---- the supervisor ----

double own_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

long own_peak_kb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// User and system time of our only child without its own children, s.
double warden_cpu_seconds() {
  double ticks = 0.0;
  for (const pid_t process : list_tree(::getpid())) {
    std::ifstream file(fmt::format("/proc/{}/stat", process));
    std::string stat;
    std::getline(file, stat);
    if (stat.find("(tprimat-warden)") == std::string::npos) continue;
    long long user = 0, system = 0;
    std::sscanf(stat.c_str() + stat.rfind(')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld", &user,
                &system);
    ticks = static_cast<double>(user + system);
  }
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

class WatchingReporter : public suite::SilentReporter {
 public:
  void progressed(const suite::Progress& progress) override {
    if (progress.elapsed_seconds - last_ < 1.0) return;
    last_ = progress.elapsed_seconds;
    warden_seconds = warden_cpu_seconds();
  }
  double warden_seconds = 0.0;

 private:
  double last_ = 0.0;
};

suite::PlannedRun planned(const Load& load, const fs::path& folder) {
  suite::PlannedRun run;
  run.spec.steps = static_cast<int64_t>(load.seconds * load.steps_per_second);
  run.spec.global_batch_size = run.spec.sequence_length = 32;
  run.plan.command = {fs::read_symlink("/proc/self/exe").string(),
                      "--train",
                      fmt::format("{}", load.seconds),
                      fmt::format("{}", load.lines_per_second),
                      fmt::format("{}", load.steps_per_second),
                      fmt::format("{}", load.flood_megabytes)};
  run.plan.steps_path = (folder / "steps.jsonl").string();
  run.plan.log_path = (folder / "training.log").string();
  run.plan.environment = {{"TPRIMAT_STEPS", run.plan.steps_path}};
  return run;
}

void supervise(const Load& load) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("bench_supervision_{}", ::getpid());
  fs::create_directories(folder);
  LocalRunner processes;
  const suite::SuiteContext context{processes, {}, {}, {}, {}, {}};
  WatchingReporter reporter;
  const auto start = SteadyClock::now();
  const double cpu_before = own_cpu_seconds();
  const suite::TrainingTrace trace = suite::follow_training(planned(load, folder), {}, context, reporter);
  const double seconds = seconds_since(start), cpu = own_cpu_seconds() - cpu_before;
  const double log_mb = static_cast<double>(fs::file_size(folder / "training.log")) * 1e-6;
  fmt::print("{:.1f} s, {:.0f} MB of log ({:.0f} MB/s), {} steps: supervisor {:.2f} s, warden {:.2f} s of CPU time\n",
             seconds, log_mb, log_mb / seconds, trace.steps.size(), cpu, reporter.warden_seconds);
  fmt::print("  {:.2f} % of one core, {:.2f} ns a byte; peak memory {} MB\n",
             100.0 * (cpu + reporter.warden_seconds) / seconds, cpu * 1e3 / log_mb, own_peak_kb() / 1024);
  fs::remove_all(folder);
}

Load load_of(int count, char** values) {
  Load load;
  if (count > 0) load.seconds = std::atof(values[0]);
  if (count > 1) load.lines_per_second = std::atoi(values[1]);
  if (count > 2) load.steps_per_second = std::atoi(values[2]);
  if (count > 3) load.flood_megabytes = std::atoll(values[3]);
  return load;
}

}  // namespace
}  // namespace tprimat

int main(int argc, char** argv) {
  using namespace tprimat;
  if (argc > 1 && std::string(argv[1]) == "--train") return train(load_of(argc - 2, argv + 2));
  Load load = load_of(argc - 1, argv + 1);
  supervise(load);
  load.flood_megabytes = 1000;
  supervise(load);
  return 0;
}
