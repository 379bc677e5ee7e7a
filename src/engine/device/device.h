#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace tprimat::engine {

// Where a training's buffers lie and its operations run: the processor, or one GPU. Work given to a GPU runs in the
// order in which it is given, while the caller goes on; upload, clear and copy are such work, and download and finish
// wait for all of it.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;  // "cpu", "NVIDIA H200"
  // Whether the host may read and write the device's memory, which then is the host's own.
  virtual bool is_host() const = 0;

  virtual std::optional<double> free_bytes() const = 0;
  // Zeroed, aligned to a huge page. Throws Error where the memory cannot be had.
  virtual std::byte* allocate(size_t bytes) = 0;
  virtual void release(std::byte* memory, size_t bytes) = 0;

  virtual void upload(void* to, const void* from, size_t bytes) = 0;    // `from` may be changed once it returns
  virtual void download(void* to, const void* from, size_t bytes) = 0;  // `to` is there once it returns
  virtual void finish() = 0;
};

Device& cpu_device();

}  // namespace tprimat::engine
