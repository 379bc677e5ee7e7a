#include "run/step_follower.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace tprimat {
namespace {

// No step record is that long, and no file is read in one go: garbage must not fill the memory.
constexpr size_t k_longest_line = size_t{1} << 20;
constexpr std::streamsize k_piece = 1 << 20;

}  // namespace

bool StepFollower::read_new(double now) {
  std::error_code error;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path_, error));
  if (error || size == offset_) return false;
  if (size < offset_) *this = StepFollower(path_);
  std::ifstream file(path_, std::ios::binary);
  file.seekg(offset_);
  const size_t before = steps_.size();
  std::string text(k_piece, '\0');
  while (offset_ < size && file.read(text.data(), std::min(std::streamsize{k_piece}, size - offset_)).gcount() > 0) {
    offset_ += file.gcount();
    take_text(std::string_view(text).substr(0, static_cast<size_t>(file.gcount())), now);
  }
  return steps_.size() > before;
}

void StepFollower::take_text(std::string_view text, double now) {
  size_t start = 0;
  for (size_t end = 0; (end = text.find('\n', start)) != std::string_view::npos; start = end + 1) {
    partial_ += text.substr(start, end - start);
    take_line(partial_, now);
    partial_.clear();
  }
  if (partial_.size() < k_longest_line) partial_ += text.substr(start);
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
