#include "run/step_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "extract/course.h"

namespace tprimat::suite {
namespace {

// Steps that are read together ended one after the other; clocks in logs have no time zone.
void date_new_steps(std::vector<StepRecord>& steps, const std::vector<StepRecord>& before, double now) {
  double end = now;
  for (size_t i = steps.size(); i-- > 0;) {
    if (i < before.size() && before[i].step == steps[i].step) {
      steps[i].unix_time = before[i].unix_time;
      continue;
    }
    steps[i].unix_time = end;
    if (steps[i].time_seconds > 0.0) end -= steps[i].time_seconds;
  }
}

// Longer than any step record; files are read in pieces, so that garbage cannot fill the memory.
constexpr size_t k_longest_line = size_t{1} << 20;
constexpr size_t k_piece = size_t{1} << 16;
constexpr int64_t k_max_restored = int64_t{64} << 20;

Descriptor open_to_read(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

}  // namespace

bool LogSteps::read_new(double now) { return seconds_since(last_read_) >= pause_seconds_ && read_all(now); }

void LogSteps::read_rest(double now) { read_all(now); }

bool LogSteps::read_all(double now) {
  std::error_code unreadable;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path_, unreadable));
  if (unreadable || size == size_) return false;
  const auto start = SteadyClock::now();
  std::vector<StepRecord> steps;
  try {
    log_ = logs::read_log(path_, {});
    steps = logs::make_step_records(*log_);
  } catch (const Error&) {  // it cannot be read now: earlier steps are kept
    last_read_ = SteadyClock::now();
    return false;
  }
  date_new_steps(steps, steps_, now);
  const bool is_new = steps.size() > steps_.size();
  steps_ = std::move(steps);
  size_ = size;
  last_read_ = SteadyClock::now();
  constexpr double k_min = 0.5, k_max = 60.0;
  pause_seconds_ = std::clamp(10.0 * seconds_since(start), k_min, k_max);
  return is_new;
}

bool StepFollower::read_new(double now) {
  const size_t before = steps_.size();
  if (!file_.is_open()) file_ = open_to_read(path_);
  if (!file_.is_open()) return false;
  read_appended(now);
  check_name();
  return steps_.size() > before;
}

void StepFollower::read_appended(double now) {
  struct stat facts {};
  if (::fstat(file_.get(), &facts) != 0) return;
  if (facts.st_size < offset_) {
    note_damage("cut short");
    offset_ = 0;
    partial_.clear();
  }
  char bytes[k_piece];
  while (offset_ < facts.st_size) {
    const auto wanted = static_cast<size_t>(std::min<int64_t>(k_piece, facts.st_size - offset_));
    const ssize_t count = ::pread(file_.get(), bytes, wanted, offset_);
    if (count <= 0) return;
    offset_ += count;
    take_text({bytes, static_cast<size_t>(count)}, now);
  }
}

// A removed file is read as long as the trainer has it open, too; a new file of its name is read instead.
void StepFollower::check_name() {
  struct stat ours {
  }, named{};
  if (::fstat(file_.get(), &ours) != 0) return;
  if (::stat(path_.c_str(), &named) != 0) return note_damage("removed");
  if (named.st_ino == ours.st_ino && named.st_dev == ours.st_dev) return;
  note_damage("replaced");
  file_ = open_to_read(path_);
  offset_ = 0;
  partial_.clear();
}

void StepFollower::note_damage(const std::string& what) {
  if (!damage_.empty()) return;
  const std::string when = steps_.empty() ? "before its first step" : fmt::format("after step {}", steps_.back().step);
  damage_ = fmt::format("the step record file was {} {}; records read before that are kept", what, when);
}

void StepFollower::read_rest(double now) {
  read_new(now);
  restore();
}

void StepFollower::restore() const {
  struct stat named {};
  if (!file_.is_open() || offset_ > k_max_restored || ::stat(path_.c_str(), &named) == 0) return;
  std::string text(static_cast<size_t>(offset_), '\0');
  const ssize_t count = ::pread(file_.get(), text.data(), text.size(), 0);
  if (count <= 0) return;
  try {
    write_file_atomically(path_, text.substr(0, static_cast<size_t>(count)));
  } catch (const Error&) {  // the records are in the result anyway
  }
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

void StepFollower::take_line(std::string_view line, double now) {
  // A writer whose file was truncated leaves a hole before its next line.
  line.remove_prefix(std::min(line.find_first_not_of('\0'), line.size()));
  std::optional<StepRecord> record = parse_step_record(std::string(line));
  if (!record || record->step < 1) {
    unreadable_lines_ += line.empty() ? 0 : 1;
    return;
  }
  if (!record->unix_time) record->unix_time = now;
  steps_.push_back(*record);
}

}  // namespace tprimat::suite
