#pragma once

#include <functional>
#include <memory>
#include <string>

#include "device/device.h"

namespace tprimat::engine {

// A moment in the order of a device's work.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Records the event behind all work launched so far; while work is recorded, as a part of it.
  virtual void record() = 0;
  virtual double seconds_since(const DeviceEvent& earlier) const = 0;  // waits for both
};

// Work that the device was given once and can repeat without being told its parts again.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  virtual void replay() = 0;
};

// A GPU.
class Accelerator : public Device {
 public:
  virtual std::unique_ptr<DeviceEvent> make_event() = 0;
  // Notes down the operations that `work` gives to the device, without doing them. They may neither wait for the device
  // nor upload, and their pointers and numbers stay as they are.
  virtual std::unique_ptr<RecordedWork> record(const std::function<void()>& work) = 0;
  // Whether events in recorded work carry the time of the last replay.
  virtual bool times_recorded_work() const { return false; }
  // A named range of launches for the vendor's profiler; ranges nest.
  virtual void begin_range(const std::string&) {}
  virtual void end_range() {}
  // Starts or stops the capture of the vendor's profiler, where one is attached to this process.
  virtual void watch_with_profiler(bool) {}
  // Ends work that waits for other ranks, which may never come. Said while an exception is on its way, before memory is
  // released, which waits for all work.
  virtual void abandon() {}
};

}  // namespace tprimat::engine
