#include "telemetry/sampler.h"

#include <csignal>

#include "base/clock.h"

namespace tprimat {

double sampling_interval(double elapsed_seconds) {
  if (elapsed_seconds < 10.0) return 0.1;
  return elapsed_seconds < 60.0 ? 0.25 : 1.0;
}

Sampler::Sampler(std::vector<std::unique_ptr<Sensor>> sensors) : sensors_(std::move(sensors)) {
  for (const auto& sensor : sensors_) traces_.push_back({sensor->name(), {}});
  thread_ = std::thread([this] { run(); });
}

Sampler::~Sampler() { end_thread(); }

std::vector<SensorTrace> Sampler::latest() const {
  const std::lock_guard lock(mutex_);
  std::vector<SensorTrace> last;
  for (const SensorTrace& trace : traces_)
    if (!trace.readings.empty()) last.push_back({trace.source, {trace.readings.back()}});
  return last;
}

std::vector<SensorTrace> Sampler::stop() {
  end_thread();
  return std::move(traces_);
}

void Sampler::end_thread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Sampler::run() {
  sigset_t all;  // signals are for the main thread, whose waiting they end
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  const auto start = SteadyClock::now();
  bool last = false;
  while (!last) {
    read_all();
    std::unique_lock lock(mutex_);
    if (stopping_) break;
    const auto pause = std::chrono::duration<double>(sampling_interval(seconds_since(start)));
    last = wake_.wait_for(lock, pause, [this] { return stopping_; });
    lock.unlock();
    if (last) read_all();
  }
}

void Sampler::read_all() {
  for (size_t i = 0; i < sensors_.size(); ++i) {
    const Reading reading = sensors_[i]->read();
    const std::lock_guard lock(mutex_);
    traces_[i].readings.push_back(reading);
  }
}

}  // namespace tprimat
