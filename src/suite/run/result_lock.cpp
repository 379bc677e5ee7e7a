#include "run/result_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <mutex>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "process/interrupt.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

constexpr auto k_touch_interval = std::chrono::seconds(20);
constexpr double k_silence_seconds = 120.0;  // several times as long: a network file system may stall
constexpr int k_rounds = 100;
constexpr auto k_settle_time = std::chrono::milliseconds(500);
constexpr size_t k_longest_lock_file = 4096;

// The holder of a lock, as stated in its file.
struct LockHolder {
  std::string host, boot, processes, started, since;
  int64_t process = 0;
  static constexpr auto fields() {
    using H = LockHolder;
    return field_list(field("host", &H::host, "name of the machine"), field("boot", &H::boot, "id of its boot"),
                      field("processes", &H::processes, "namespace of its process numbers"),
                      field("process", &H::process, "process id"),
                      field("started", &H::started, "start of that process, clock ticks since the boot"),
                      field("since", &H::since, "when it took the lock, UTC"));
  }
};

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Field 22 of /proc/<id>/stat; empty where there is no such process. The process id alone may belong to a new process.
std::string start_of_process(int64_t process) {
  const std::string text = first_line(fmt::format("/proc/{}/stat", process));
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return "";
  size_t at = name_end;
  for (int blank = 0; blank < 20 && at != std::string::npos; ++blank) at = text.find(' ', at + 1);
  return at == std::string::npos ? "" : text.substr(at + 1, text.find(' ', at + 1) - at - 1);
}

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

LockHolder this_process() {
  std::error_code unknown;
  LockHolder holder;
  holder.host = host_name();
  holder.boot = first_line("/proc/sys/kernel/random/boot_id");
  holder.processes = fs::read_symlink("/proc/self/ns/pid", unknown).string();
  holder.process = ::getpid();
  holder.started = start_of_process(holder.process);
  holder.since = utc_timestamp();
  return holder;
}

std::optional<LockHolder> read_holder(const Descriptor& file) {
  std::string text(k_longest_lock_file, '\0');
  const ssize_t count = ::pread(file.get(), text.data(), text.size(), 0);
  if (count <= 0) return std::nullopt;
  text.resize(static_cast<size_t>(count));
  try {
    return from_json<LockHolder>(parse_json(text, "the lock"), "the lock");
  } catch (const Error&) {  // truncated, or not ours
    return std::nullopt;
  }
}

bool is_ours(const std::optional<LockHolder>& holder) {
  const LockHolder ours = this_process();
  return holder && holder->boot == ours.boot && holder->processes == ours.processes && holder->process == ours.process;
}

std::string name_holder(const std::optional<LockHolder>& holder) {
  if (!holder) return "another run is writing this result";
  return fmt::format("another run is writing this result: process {} on {}, since {}", holder->process,
                     printable(holder->host), printable(holder->since));
}

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Seconds since its holder touched the file, by the clock of the file system. fchmod() reads that clock: it sets the
// file's change time but not its modification time.
double seconds_untouched(const Descriptor& file) {
  struct stat before {
  }, after{};
  if (::fstat(file.get(), &before) != 0) return 0.0;
  const bool asked = ::fchmod(file.get(), before.st_mode & 07777) == 0 && ::fstat(file.get(), &after) == 0;
  return (asked ? seconds_of(after.st_ctim) : unix_time_seconds()) - seconds_of(before.st_mtim);
}

// `is_locked`: no process on this machine holds the lock; other machines may, if the file system keeps locks local.
bool is_alive(const LockHolder& holder, const Descriptor& file, bool is_locked) {
  const LockHolder ours = this_process();
  const bool same_boot = holder.boot == ours.boot;
  if (same_boot && is_locked) return false;
  if (same_boot && holder.processes == ours.processes)
    return !holder.started.empty() && start_of_process(holder.process) == holder.started;
  return seconds_untouched(file) < k_silence_seconds;
}

}  // namespace

ResultLock::ResultLock(fs::path path) : path_(std::move(path)) {
  if (const auto holder = find_holder())
    throw Error(Problem{*holder, path_.string(), "wait until it ends, or choose another --output"},
                ExitStatus::work_failed);
  toucher_ = std::jthread([this](const std::stop_token& stop) { touch_until(stop); });
}

ResultLock::~ResultLock() {
  if (has_its_name()) ::unlink(path_.c_str());
}

// As a sentence; nothing once the lock is ours.
std::optional<std::string> ResultLock::find_holder() {
  for (int round = 0; round < k_rounds; ++round) {
    open_file();
    const bool is_locked = ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
    if (!is_locked && errno == EWOULDBLOCK) return name_holder(read_holder(file_));
    if (!has_its_name()) continue;  // its holder has just removed it
    const std::optional<LockHolder> holder = read_holder(file_);
    if (holder && is_alive(*holder, file_, is_locked)) return name_holder(holder);
    write_holder();
    if (is_locked) return std::nullopt;
    std::this_thread::sleep_for(k_settle_time);  // if two wrote at once, the last one holds it
    const std::optional<LockHolder> last = read_holder(file_);
    return is_ours(last) ? std::nullopt : std::optional(name_holder(last));
  }
  return name_holder(std::nullopt);
}

void ResultLock::open_file() {
  ensure_folder(path_.parent_path());
  file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
  struct stat facts {};
  if (file_.is_open() && ::fstat(file_.get(), &facts) == 0 && S_ISREG(facts.st_mode)) return;
  const std::string reason = file_.is_open() ? "is not a file" : std::strerror(errno);
  throw Error(
      Problem{"cannot lock the result's name: " + reason, path_.string(), "choose another folder with --output"},
      ExitStatus::work_failed);
}

bool ResultLock::has_its_name() const {
  struct stat ours {
  }, named{};
  return ::fstat(file_.get(), &ours) == 0 && ::lstat(path_.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
         ours.st_dev == named.st_dev;
}

void ResultLock::write_holder() const {
  const std::string text = print_json(to_json(this_process()));
  const bool is_written = ::ftruncate(file_.get(), 0) == 0 &&
                          ::pwrite(file_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  if (!is_written)
    throw Error(Problem{std::string("cannot lock the result's name: ") + std::strerror(errno), path_.string(),
                        errno == ENOSPC ? "free some space, or choose another folder with --output"
                                        : "choose another folder with --output"},
                ExitStatus::work_failed);
  ::fsync(file_.get());
}

void ResultLock::touch_until(const std::stop_token& stop) const {
  block_signals_in_this_thread();
  std::mutex mutex;
  std::condition_variable_any ended;
  std::unique_lock lock(mutex);
  while (!ended.wait_for(lock, stop, k_touch_interval, [&] { return stop.stop_requested(); }))
    ::futimens(file_.get(), nullptr);
}

}  // namespace tprimat::suite
