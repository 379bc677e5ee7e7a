#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string_view>

#include "text/event_records.h"

namespace tprimat::engine {

// A TensorBoard event file that grows as the training goes on. Each start of the trainer writes a file of its own;
// TensorBoard joins those of one folder.
class EventFile {
 public:
  // Creates <folder>/events.out.tfevents.<seconds>.<host>.<process>.0 and missing folders. With `resumed_at`,
  // TensorBoard forgets what an earlier file of the folder shows of this step and later ones. Times are seconds since
  // 1970. Throws Error.
  EventFile(const std::filesystem::path& folder, double unix_time, std::optional<int64_t> resumed_at = std::nullopt);

  // Appends the figures of one step and hands them to the system. Throws Error when the disk is full.
  void write_step(int64_t step, double unix_time, std::span<const EventScalar> scalars);

  const std::filesystem::path& path() const { return path_; }

 private:
  void append(std::string_view record);

  std::filesystem::path path_;
  std::ofstream stream_;
};

}  // namespace tprimat::engine
