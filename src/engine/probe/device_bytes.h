#pragma once

#include <cstddef>

#include "device/device.h"

namespace tprimat::engine {

// Zeroed memory of a device that goes with this.
class DeviceBytes {
 public:
  DeviceBytes(Device& device, size_t bytes) : device_(device), bytes_(bytes), data_(device.allocate(bytes)) {}
  ~DeviceBytes() { device_.release(data_, bytes_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  Device& device_;
  size_t bytes_;
  std::byte* data_;
};

}  // namespace tprimat::engine
