#include "telemetry/sampler.h"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <limits>

#include "base/clock.h"
#include "telemetry/sensor.h"

namespace tprimat {
namespace {

constexpr double k_cpu_share = 0.004;       // of one core, for all sensors together
constexpr double k_longest_interval = 1.0;  // s; the energy figure needs a reading a second
constexpr size_t k_kept_as_read = 3000;     // ten minutes at five a second
constexpr double k_merged_seconds = 0.9;    // of readings that become one
constexpr double k_due_tolerance = 0.005;   // s; sensors that are due together are read together
constexpr double k_smoothing = 0.2;

double thread_cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::optional<double> mean_of(std::span<const Reading> readings, std::optional<double> Reading::*figure) {
  double sum = 0.0;
  for (const Reading& reading : readings) {
    if (!(reading.*figure)) return std::nullopt;  // the mean of some readings would get the time of all
    sum += *(reading.*figure);
  }
  return sum / static_cast<double>(readings.size());
}

std::optional<uint32_t> most_throttle(std::span<const Reading> readings) {
  uint32_t throttle = 0;
  for (const ThrottleName& each : k_throttle_names) {
    size_t count = 0;
    for (const Reading& reading : readings) {
      if (!reading.throttle) return std::nullopt;
      count += (*reading.throttle & each.reason) != 0 ? 1 : 0;
    }
    if (2 * count > readings.size()) throttle |= each.reason;
  }
  return throttle;
}

}  // namespace

double sampling_interval(double elapsed_seconds, const ReadingCost& cost) {
  const double wanted = elapsed_seconds < 10.0 ? 0.1 : 0.2;
  if (cost.all <= k_cpu_share * wanted) return wanted;
  const double afforded = cost.own * static_cast<double>(cost.sensors) / k_cpu_share;
  return std::clamp(afforded, wanted, k_longest_interval);
}

Reading merge_readings(std::span<const Reading> readings) {
  Reading merged;
  if (readings.empty()) return merged;
  for (const Reading& reading : readings) {
    merged.unix_time += reading.unix_time / static_cast<double>(readings.size());
    if (reading.memory_used_bytes)
      merged.memory_used_bytes = std::max(merged.memory_used_bytes, reading.memory_used_bytes);
  }
  for (const auto figure : {&Reading::utilisation, &Reading::power_watts, &Reading::energy_joules,
                            &Reading::temperature_celsius, &Reading::clock_hz, &Reading::memory_clock_hz})
    merged.*figure = mean_of(readings, figure);
  merged.throttle = most_throttle(readings);
  return merged;
}

void Thinner::thin(std::vector<Reading>& readings) {
  if (readings.size() - thinned_ < 2 * k_kept_as_read) return;
  const size_t end = thinned_ + k_kept_as_read;
  for (size_t from = thinned_, to = from; from < end; from = to) {
    while (to < end && readings[to].unix_time - readings[from].unix_time < k_merged_seconds) ++to;
    to = std::max(to, from + 1);  // where the clock was set back
    readings[thinned_++] = merge_readings(std::span(readings).subspan(from, to - from));
  }
  using Place = std::vector<Reading>::difference_type;
  readings.erase(readings.begin() + static_cast<Place>(thinned_), readings.begin() + static_cast<Place>(end));
}

Sampler::Sampler(std::vector<std::unique_ptr<Sensor>> sensors) {
  for (auto& sensor : sensors) {
    traces_.push_back({sensor->name(), {}});
    watches_.push_back({std::move(sensor)});
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

std::vector<SensorTrace> Sampler::latest() const {
  const std::lock_guard lock(mutex_);
  std::vector<SensorTrace> last;
  for (const SensorTrace& trace : traces_)
    if (!trace.readings.empty()) last.push_back({trace.source, {trace.readings.back()}});
  return last;
}

std::vector<SensorTrace> Sampler::stop() {
  thread_.request_stop();
  thread_.join();
  for (size_t i = 0; i < traces_.size(); ++i) traces_[i].notes = watches_[i].sensor->notes();
  return std::move(traces_);
}

void Sampler::run(const std::stop_token& stop) {
  sigset_t all;  // signals must reach the main thread and end its wait
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  const auto start = SteadyClock::now();
  while (true) {
    read_due(seconds_since(start));
    std::unique_lock lock(mutex_);
    if (stop.stop_requested()) return;
    const auto pause = std::chrono::duration<double>(std::max(0.001, next_due() - seconds_since(start)));
    wake_.wait_for(lock, stop, pause, [] { return false; });
    lock.unlock();
    if (stop.stop_requested()) return read_due(std::numeric_limits<double>::infinity());
  }
}

double Sampler::next_due() const {
  double next = k_longest_interval + (watches_.empty() ? 0.0 : watches_.front().due);
  for (const Watch& watch : watches_) next = std::min(next, watch.due);
  return next;
}

double Sampler::cost_of_all() const {
  double sum = 0.0;
  for (const Watch& watch : watches_) sum += watch.cpu_seconds;
  return sum;
}

void Sampler::read_due(double elapsed) {
  for (size_t i = 0; i < watches_.size(); ++i) {
    Watch& watch = watches_[i];
    if (watch.due > elapsed + k_due_tolerance) continue;
    const double before = thread_cpu_seconds();
    read_sensor(i);
    const double taken = thread_cpu_seconds() - before;
    watch.cpu_seconds += (watch.cpu_seconds == 0.0 ? 1.0 : k_smoothing) * (taken - watch.cpu_seconds);
    watch.due = elapsed + sampling_interval(elapsed, {watch.cpu_seconds, cost_of_all(), watches_.size()});
  }
}

void Sampler::read_sensor(size_t index) {
  const Reading reading = watches_[index].sensor->read();
  const std::lock_guard lock(mutex_);
  traces_[index].readings.push_back(reading);
  watches_[index].thinner.thin(traces_[index].readings);
}

}  // namespace tprimat
