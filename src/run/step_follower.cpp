#include "run/step_follower.h"

#include <filesystem>
#include <fstream>

namespace tprimat {
namespace {

constexpr size_t k_longest_line =
    size_t{1} << 20;  // no step record is that long: a file without newlines must not fill the memory

}  // namespace

bool StepFollower::read_new(double now) {
  std::error_code error;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path_, error));
  if (error || size == offset_) return false;
  if (size < offset_) *this = StepFollower(path_);
  std::ifstream file(path_, std::ios::binary);
  file.seekg(offset_);
  std::string text(static_cast<size_t>(size - offset_), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  offset_ += static_cast<int64_t>(text.size());
  const size_t before = steps_.size();
  size_t start = 0;
  for (size_t end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
    take_line(partial_ + text.substr(start, end - start), now);
    partial_.clear();
  }
  if (partial_.size() < k_longest_line) partial_ += text.substr(start);
  return steps_.size() > before;
}

void StepFollower::take_line(const std::string& line, double now) {
  std::optional<StepRecord> record = parse_step_record(line);
  if (!record || record->step < 1) {
    unreadable_lines_ += line.empty() ? 0 : 1;
    return;
  }
  if (!record->unix_time) record->unix_time = now;
  steps_.push_back(*record);
}

}  // namespace tprimat
