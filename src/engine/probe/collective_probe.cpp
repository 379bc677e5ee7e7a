#include "probe/collective_probe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "probe/measuring.h"

namespace tprimat::engine {
namespace {

constexpr MeasuringRule k_collective_rule = {
    .warm_seconds = 0.02, .window_seconds = 0.02, .longest_seconds = 0.3, .noise = 0.02, .least_windows = 5};
constexpr CollectiveKind k_kinds[] = {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                      CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
                                      CollectiveKind::send_receive};

// The ranks, and the memory of each in which the data lie.
struct CollectiveGround {
  Communicator& group;
  Device& device;
};

// A rank's share of data of about `bytes`, and the whole, in fp32.
struct Data {
  Data(int64_t bytes, const CollectiveGround& ground)
      : block(std::max<int64_t>(1, bytes / ground.group.size() / static_cast<int64_t>(sizeof(float)))),
        count(block * ground.group.size()),
        values(ground.device, static_cast<size_t>(count) * sizeof(float)),
        received(ground.device, static_cast<size_t>(count) * sizeof(float)) {}
  int64_t block, count;
  DeviceBytes values, received;
};

void send_to_next(Communicator& world, Data& data) {
  const int next = (world.rank() + 1) % world.size(), previous = (world.rank() + world.size() - 1) % world.size();
  const auto coming = world.start_receive(comm_buffer(data.received.as<float>(), data.count), previous, 0);
  world.start_send(comm_buffer(data.values.as<float>(), data.count), next, 0)->wait();
  coming->wait();
}

void run_once(CollectiveKind kind, Communicator& world, Data& data) {
  float *const all = data.values.as<float>(), *const own = all + world.rank() * data.block;
  switch (kind) {
    case CollectiveKind::all_reduce: return world.all_reduce(all, data.count);
    case CollectiveKind::all_gather: return world.all_gather(own, data.block, all);
    case CollectiveKind::reduce_scatter: return world.reduce_scatter(all, data.block, own);
    case CollectiveKind::all_to_all: return world.all_to_all(all, data.block, data.received.as<float>());
    case CollectiveKind::send_receive: return send_to_next(world, data);
  }
}

// All ranks repeat equally often and take the time of the slowest, so that all come to the same decisions.
Window measure_repetitions(const CollectiveGround& ground, int64_t repetitions, const auto& work) {
  Communicator& world = ground.group;
  world.barrier();
  const double cpu_start = process_cpu_seconds();
  const auto start = SteadyClock::now();
  for (int64_t i = 0; i < repetitions; ++i) work();
  ground.device.finish();
  const double elapsed = seconds_since(start);
  double slowest = elapsed, idle = 1.0 - std::min(1.0, (process_cpu_seconds() - cpu_start) / elapsed);
  if (!ground.device.is_host()) idle = 0;  // no thread is needed
  world.all_reduce(&slowest, 1, Reduction::max);
  world.all_reduce(&idle, 1, Reduction::max);
  return {slowest / static_cast<double>(repetitions), 1.0 - idle};
}

int64_t repetitions_for(const Window& window, double seconds) {
  return std::max<int64_t>(1, static_cast<int64_t>(seconds / std::max(window.seconds, 1e-9)));
}

Measured measure_together(const CollectiveGround& ground, const auto& work) {
  Window last = measure_repetitions(ground, 1, work);
  last = measure_repetitions(ground, repetitions_for(last, k_collective_rule.warm_seconds), work);
  double total = 0;  // the same on all ranks
  const auto next_window = [&] {
    const int64_t repetitions = repetitions_for(last, k_collective_rule.window_seconds);
    last = measure_repetitions(ground, repetitions, work);
    total += last.seconds * static_cast<double>(repetitions);
    return last;
  };
  return measure_windows(k_collective_rule, next_window, [&] { return total; });
}

CollectiveRate measure_collective(CollectiveKind kind, int64_t bytes, const CollectiveGround& ground) {
  Communicator& world = ground.group;
  Data data(bytes, ground);
  CollectiveRate rate;
  rate.kind = kind;
  rate.bytes = data.count * static_cast<int64_t>(sizeof(float));
  rate.measured = measure_together(ground, [&] { run_once(kind, world, data); });
  rate.algorithm_bytes_per_second = static_cast<double>(rate.bytes) / rate.measured.median_seconds;
  rate.bus_bytes_per_second = rate.algorithm_bytes_per_second * bus_factor(kind, world.size());
  return rate;
}

}  // namespace

double bus_factor(CollectiveKind kind, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (kind) {
    case CollectiveKind::all_reduce: return 2 * others;
    case CollectiveKind::all_gather: return others;
    case CollectiveKind::reduce_scatter: return others;
    case CollectiveKind::all_to_all: return others;
    case CollectiveKind::send_receive: return 1;
  }
  CHECK(!"a collective");
}

CollectiveReport measure_collectives(Communicator& group, Device& device, const std::vector<int64_t>& sizes) {
  CHECK(group.size() > 1);
  CollectiveReport report;
  report.ranks = group.size();
  report.device = device.name();
  for (const CollectiveKind kind : k_kinds)
    for (const int64_t bytes : sizes) report.rates.push_back(measure_collective(kind, bytes, {group, device}));
  report.how = fmt::format(
      "median of windows of {} s, by the slowest rank, until they agree to {} % or for {} s; fp32, sums and gathers in "
      "place, {} ranks "
      "with {}; bus bandwidth as nccl-tests defines it",
      k_collective_rule.window_seconds, k_collective_rule.noise * 100, k_collective_rule.longest_seconds, group.size(),
      device.is_host() ? "one thread each" : fmt::format("a GPU each, {}", device.name()));
  return report;
}

}  // namespace tprimat::engine
