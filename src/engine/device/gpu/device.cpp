#include "device/gpu/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "device/gpu/context.h"
#include "device/gpu/profiler.h"

namespace tprimat::engine::gpu {
namespace {

#if defined(TPRIMAT_GPU_HOST)
constexpr size_t k_scratch_bytes = size_t{8} << 20, k_staging_bytes = size_t{1} << 20;
#else
constexpr size_t k_scratch_bytes = size_t{64} << 20, k_staging_bytes = size_t{4} << 20;
#endif
constexpr size_t k_staging_buffers = 8;
// What is left to the libraries: their kernels, which are loaded when they are first used, their workspaces, recorded
// work.
constexpr size_t k_left_to_libraries = size_t{1} << 30;
// Of that, what no library may take as its workspace.
constexpr size_t k_kept_free = size_t{256} << 20;

Context* the_context = nullptr;

double gigabytes(size_t bytes) { return static_cast<double>(bytes) / 1e9; }

std::byte* allocate_on_device(size_t bytes) {
  void* memory = nullptr;
  const Status status = driver::allocate(&memory, bytes);
  if (status != k_out_of_memory) {
    check(status);
    return static_cast<std::byte*>(memory);
  }
  driver::ignore(driver::last_error());  // is not said again
  size_t free = 0, total = 0;
  check(driver::memory(&free, &total));
  throw Error(Problem{fmt::format("the training needs {:.2f} GB of this GPU's memory, but {:.2f} of {:.2f} GB are free",
                                  gigabytes(bytes), gigabytes(free), gigabytes(total)),
                      "GPU",
                      "use a smaller micro batch, sequence length or model, or more GPUs; nvidia-smi or rocm-smi lists "
                      "other processes on this GPU"},
              ExitStatus::work_failed);
}

// Pinned memory through which bytes go to the device while the host goes on.
class Staging {
 public:
  explicit Staging(Stream stream) : stream_(stream) {
    for (Buffer& buffer : buffers_) {
      check(driver::allocate_pinned(&buffer.memory, k_staging_bytes));
      check(driver::make_order_event(&buffer.free));
      check(driver::record_event(buffer.free, stream_));
    }
  }
  ~Staging() {
    for (const Buffer& buffer : buffers_) {
      driver::ignore(driver::destroy_event(buffer.free));
      driver::ignore(driver::release_pinned(buffer.memory));
    }
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void upload(std::byte* to, const std::byte* from, size_t bytes) {
    for (size_t done = 0; done < bytes; done += k_staging_bytes) {
      const size_t part = std::min(k_staging_bytes, bytes - done);
      const Buffer& buffer = next();
      std::memcpy(buffer.memory, from + done, part);
      check(driver::copy_to_device(to + done, buffer.memory, part, stream_));
      check(driver::record_event(buffer.free, stream_));
    }
  }
  // One part is on its way while the one before it is taken out.
  void download(std::byte* to, const std::byte* from, size_t bytes) {
    const Buffer* before = nullptr;
    for (size_t done = 0; done < bytes; done += k_staging_bytes) {
      const Buffer& buffer = next();
      check(driver::copy_to_host(buffer.memory, from + done, std::min(k_staging_bytes, bytes - done), stream_));
      check(driver::record_event(buffer.free, stream_));
      if (before != nullptr) take_out(*before, to + done - k_staging_bytes, k_staging_bytes);
      before = &buffer;
    }
    if (before == nullptr) return;
    const size_t last = (bytes - 1) / k_staging_bytes * k_staging_bytes;
    take_out(*before, to + last, bytes - last);
  }

 private:
  struct Buffer {
    void* memory = nullptr;
    Event free = nullptr;
  };
  const Buffer& next() {
    const Buffer& buffer = buffers_[turn_++ % k_staging_buffers];
    wait_for(buffer.free);
    return buffer;
  }
  static void take_out(const Buffer& buffer, std::byte* to, size_t bytes) {
    wait_for(buffer.free);
    std::memcpy(to, buffer.memory, bytes);
  }

  Stream stream_;
  std::array<Buffer, k_staging_buffers> buffers_;
  size_t turn_ = 0;
};

class GpuEvent : public DeviceEvent {
 public:
  GpuEvent() { check(driver::make_event(&event_)); }
  ~GpuEvent() override {
    if (has_context() && context().given_up) return;
    driver::ignore(driver::finish_event(event_));
    driver::ignore(driver::destroy_event(event_));
  }
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;

  void record() override {
    const Stream stream = context().stream;
    check(driver::is_recording(stream) ? driver::record_event_in_graph(event_, stream)
                                       : driver::record_event(event_, stream));
  }
  double seconds_since(const DeviceEvent& earlier) const override {
    const Event first = static_cast<const GpuEvent&>(earlier).event_;
    wait_for(first);
    wait_for(event_);
    float milliseconds = 0;
    check(driver::elapsed_milliseconds(&milliseconds, first, event_));
    return milliseconds / 1e3;
  }

 private:
  Event event_ = nullptr;
};

class RecordedGraph : public RecordedWork {
 public:
  explicit RecordedGraph(const std::function<void()>& work) {
    const Graph graph = record_graph(work);
    const Status status = driver::make_program(&program_, graph);
    driver::ignore(driver::destroy_graph(graph));
    check(status);
  }
  ~RecordedGraph() override {
    if (context().given_up) return;
    driver::ignore(driver::finish_stream(context().stream));
    driver::ignore(driver::destroy_program(program_));
  }
  RecordedGraph(const RecordedGraph&) = delete;
  RecordedGraph& operator=(const RecordedGraph&) = delete;

  void replay() override { check(driver::launch_program(program_, context().stream)); }

 private:
  static Graph record_graph(const std::function<void()>& work) {
    check(driver::begin_capture(context().stream));
    Graph graph = nullptr;
    try {
      work();
    } catch (...) {
      if (driver::end_capture(context().stream, &graph) == k_success) driver::ignore(driver::destroy_graph(graph));
      driver::ignore(driver::last_error());
      throw;
    }
    check(driver::end_capture(context().stream, &graph));
    return graph;
  }
  GraphProgram program_ = nullptr;
};

// Keeps what cannot be freed until the process ends, because freeing would wait for work that does not end.
void leave_behind(std::shared_ptr<void> kept) {
  static auto* const all = new std::vector<std::shared_ptr<void>>;
  all->push_back(std::move(kept));
}

class GpuDevice : public Accelerator {
 public:
  explicit GpuDevice(int index) {
    CHECK(the_context == nullptr);
    check(driver::use_device(index));
    DeviceProperties properties;
    check(driver::properties(&properties, index));
    name_ = properties.name;
    context_.index = index;
    context_.multiprocessors = properties.multiProcessorCount;
    check(driver::make_stream(&context_.stream));
    context_.scratch = allocate_on_device(k_scratch_bytes);
    context_.scratch_bytes = k_scratch_bytes;
    staging_ = std::make_unique<Staging>(context_.stream);
    the_context = &context_;
  }
  ~GpuDevice() override {
    if (context_.given_up) {
      leave_behind(std::move(staging_));
      for (auto& [type, belonging] : context_.belongings) leave_behind(std::move(belonging));
    } else {
      driver::ignore(driver::finish_stream(context_.stream));
      context_.belongings.clear();
      staging_.reset();
      driver::ignore(driver::release(context_.scratch));
      driver::ignore(driver::destroy_stream(context_.stream));
    }
    the_context = nullptr;
  }

  std::string name() const override { return name_; }
  bool is_host() const override { return false; }
  std::optional<double> free_bytes() const override {
    size_t free = 0, total = 0;
    check(driver::memory(&free, &total));
    return static_cast<double>(free - std::min(free, k_left_to_libraries));
  }
  std::byte* allocate(size_t bytes) override {
    std::byte* const memory = allocate_on_device(bytes);
    check(driver::fill(memory, 0, bytes, context_.stream));
    return memory;
  }
  void release(std::byte* memory, size_t) override {
    if (!context_.given_up) driver::ignore(driver::release(memory));
  }
  void upload(void* to, const void* from, size_t bytes) override {
    staging_->upload(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
  }
  void download(void* to, const void* from, size_t bytes) override {
    staging_->download(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
  }
  void finish() override { wait_for(context_.stream); }
  std::unique_ptr<DeviceEvent> make_event() override { return std::make_unique<GpuEvent>(); }
  std::unique_ptr<RecordedWork> record(const std::function<void()>& work) override {
    return std::make_unique<RecordedGraph>(work);
  }
  bool times_recorded_work() const override { return driver::k_graphs_time_events; }
  void begin_range(const std::string& name) override { profiler::begin_range(name.c_str()); }
  void end_range() override { profiler::end_range(); }
  void watch_with_profiler(bool watches) override { profiler::watch(watches); }
  void abandon() override {
    if (context_.peers != nullptr) context_.peers->abandon();
  }

 private:
  std::string name_;
  Context context_;
  std::unique_ptr<Staging> staging_;
};

// Of two streams that share a queue, a transfer that waits for another rank would hold up the work for which that rank
// waits.
void give_streams_their_queues() {
  ::setenv(TPRIMAT_GPU_NAME("CUDA_DEVICE_MAX_CONNECTIONS", "GPU_MAX_HW_QUEUES"), TPRIMAT_GPU_NAME("32", "16"), 0);
}

std::string bus_address(int index) {
  char address[64] = {};
  check(driver::bus_address(address, sizeof address, index));
  return address;
}

// 13000 is 13.0.
std::string release_of(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

// CUDA says of a machine without any driver, too, that its driver is too old.
void refuse_old_driver() {
  int runtime = 0, supported = 0;
  driver::ignore(driver::runtime_version(&runtime));
  driver::ignore(driver::driver_version(&supported));
  if (supported == 0) return;
  throw Error(Problem{fmt::format("the GPU's driver is too old: it supports {} up to {}, and this program needs {}",
                                  TPRIMAT_GPU_NAME("CUDA", "HIP"), release_of(supported), release_of(runtime)),
                      "GPU driver",
                      TPRIMAT_GPU_NAME("install a newer driver (CUDA 13 needs release 580 or later; Debian: sudo "
                                       "apt-get install nvidia-driver), or build with an older toolkit (docs/gpu.md)",
                                       "install a newer driver (sudo apt-get install amdgpu-dkms), or build with an "
                                       "older ROCm (docs/gpu.md)")},
              ExitStatus::missing_component);
}

void require_device(int index) {
  const int count = count_devices();
  if (index >= 0 && index < count) return;
  throw Error(Problem{fmt::format("there is no GPU {} here: this process sees {}", index, count), "GPU",
                      "count GPUs from 0; check CUDA_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES, and list all GPUs with "
                      "nvidia-smi or rocm-smi"},
              ExitStatus::missing_component);
}

}  // namespace

bool has_context() { return the_context != nullptr; }

Context& context() {
  CHECK(the_context != nullptr);
  return *the_context;
}

size_t bytes_for_libraries() {
  size_t free = 0, total = 0;
  check(driver::memory(&free, &total));
  return free - std::min(free, k_kept_free);
}

int count_devices() {
  give_streams_their_queues();  // read when the driver starts
  int count = 0;
  const Status status = driver::count_devices(&count);
  if (status == k_success) return count;
  driver::ignore(driver::last_error());
  if (status == k_old_driver) refuse_old_driver();
  return 0;
}

std::string device_address(int index) {
  require_device(index);
  const std::string address = bus_address(index);
  int before = 0;  // parts of one GPU may stand at one address
  for (int other = 0; other < index; ++other) before += bus_address(other) == address ? 1 : 0;
  return before == 0 ? address : fmt::format("{} #{}", address, before);
}

std::unique_ptr<Accelerator> make_device(int index) {
  require_device(index);
  return std::make_unique<GpuDevice>(index);
}

}  // namespace tprimat::engine::gpu
