#include "process/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "process/log_file.h"
#include "process/warden.h"
#include "text/words.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

constexpr size_t k_read_size = 64 * 1024;
// A program that prints line by line would wake us for each line: output within this time is read at once, while the
// pipe has space.
constexpr double k_gather_seconds = 0.05;
constexpr double k_mend_interval_seconds = 1.0;
constexpr double k_wake_interval_seconds = 0.05;
constexpr double k_answer_seconds = 5.0;  // for a warden on a busy machine, beyond the time for its work
constexpr int k_reads_per_poll = 16;      // a child that floods us must not keep poll() from returning

std::string search_path(const Command& command) {
  const auto own = command.environment.find("PATH");
  if (own != command.environment.end()) return own->second;
  const char* path = std::getenv("PATH");
  return path == nullptr ? "/usr/bin:/bin" : path;
}

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

std::string find_program(const Command& command) {
  const std::string& name = command.argv.front();
  if (name.find('/') != std::string::npos) return name;
  const std::string path = search_path(command);
  for (const std::string_view folder : split(path, ':'))
    if (const fs::path candidate = fs::path(folder) / name; is_program(candidate)) return candidate.string();
  throw Error(
      Problem{fmt::format("the program '{}' is not in PATH", name), "", "install it, or add its folder to PATH"},
      ExitStatus::missing_component);
}

[[noreturn]] void fail_to_start(const Command& command, int reason) {
  const ExitStatus status = reason == ENOENT ? ExitStatus::missing_component : ExitStatus::work_failed;
  const std::string where = command.working_directory.empty() ? "" : " in " + command.working_directory;
  throw Error(Problem{fmt::format("cannot start {}{}: {}", command.argv.front(), where, std::strerror(reason)), "", ""},
              status);
}

// Our environment with the command's additions, and pointers into it as execve wants them.
class EnvironmentBlock {
 public:
  explicit EnvironmentBlock(const std::map<std::string, std::string>& additions) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      if (!additions.contains(text.substr(0, text.find('=')))) entries_.push_back(text);
    }
    for (const auto& [name, value] : additions) entries_.push_back(name + "=" + value);
    for (std::string& entry : entries_) pointers_.push_back(entry.data());
    pointers_.push_back(nullptr);
  }
  char* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::string> entries_;
  std::vector<char*> pointers_;
};

struct Pipe {
  Descriptor read_end, write_end;
};

// Never 0, 1 or 2, which the child replaces, even when we were started with those closed.
Descriptor above_standard(int descriptor) {
  if (descriptor > STDERR_FILENO) return Descriptor(descriptor);
  Descriptor low(descriptor);
  return Descriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

// Both ends close on exec.
Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(Problem{std::string("cannot make a pipe: ") + std::strerror(errno), "",
                        "raise the limit on open files: ulimit -n"},
                ExitStatus::work_failed);
  return {above_standard(ends[0]), above_standard(ends[1])};
}

void set_nonblocking(const Descriptor& descriptor) {
  ::fcntl(descriptor.get(), F_SETFL, ::fcntl(descriptor.get(), F_GETFL) | O_NONBLOCK);
}

// Makes the pipe as large as an ordinary user may, so that the program does not wait for us. Returns its size.
size_t widen(const Descriptor& pipe) {
  constexpr int k_wanted = 1 << 20;
  ::fcntl(pipe.get(), F_SETPIPE_SZ, k_wanted);
  const int size = ::fcntl(pipe.get(), F_GETPIPE_SZ);
  return size > 0 ? static_cast<size_t>(size) : k_read_size;
}

bool has_ended(pid_t process) {
  int ignored = 0;
  const pid_t result = ::waitpid(process, &ignored, WNOHANG);
  return result == process || (result < 0 && errno == ECHILD);
}

class LocalChild : public ChildProcess {
 public:
  explicit LocalChild(const Command& command) : log_(command.log_path), time_limit_(command.time_limit_seconds) {
    start(command);
  }
  LocalChild(const LocalChild&) = delete;
  LocalChild& operator=(const LocalChild&) = delete;

  ~LocalChild() override {
    if (exit_) return;
    order(k_order_kill);
    orders_.close();
    reap_warden();  // ends once the tree is gone
  }

  pid_t pid() const override { return leader_; }

  std::optional<ExitReason> poll(double seconds, const LineSink& sink) override {
    if (exit_) return exit_;
    wake_warden();
    wait_for_event(seconds);
    read_output(sink, k_reads_per_poll);
    mend_log();
    if (read_report())
      finish(sink);
    else
      press_on();
    return exit_;
  }

  std::string log_damage() const override { return log_.damage(); }

  void stop() override {
    if (exit_) return;
    if (!stop_cause_) stop_cause_ = ExitReason::Kind::interrupted;
    order(std::exchange(stop_ordered_, true) ? k_order_kill : k_order_stop);
  }

 private:
  void start(const Command& command) {
    const std::string program = find_program(command);
    const EnvironmentBlock environment(command.environment);
    std::vector<std::string> arguments = command.argv;
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    Pipe output = make_pipe();
    pipe_size_ = widen(output.write_end);
    Pipe orders = make_pipe(), reports = make_pipe();
    const WardenJob job{program.c_str(),
                        argv.data(),
                        environment.data(),
                        command.working_directory.empty() ? nullptr : command.working_directory.c_str(),
                        output.write_end.get(),
                        orders.read_end.get(),
                        reports.write_end.get(),
                        command.kept_open,
                        time_limit_.value_or(0.0),
                        command.grace_seconds,
                        command.orphaned_grace_seconds,
                        command.input_path.empty() ? "/dev/null" : command.input_path.c_str()};
    grace_seconds_ = command.grace_seconds;
    warden_ = ::fork();
    if (warden_ == 0) run_warden(job);
    if (warden_ < 0) fail_to_start(command, errno);
    output_ = std::move(output.read_end);
    orders_ = std::move(orders.write_end);
    reports_ = std::move(reports.read_end);
    reports.write_end.close();  // or the end of the warden would go unnoticed
    set_nonblocking(output_);
    set_nonblocking(reports_);
    await_start(command);
  }

  void await_start(const Command& command) {
    WardenReport report{WardenReport::What::failed_to_start, EIO};
    while (::read(reports_.get(), &report, sizeof report) < 0) {
      wake_warden();
      wait_for_ending(k_wake_interval_seconds);
    }
    if (report.what != WardenReport::What::started) {
      reap_warden();
      fail_to_start(command, report.value);
    }
    leader_ = report.value;
  }

  void wait_for_event(double seconds) const {
    double wait = seconds;
    if (time_limit_ && !stop_ordered_) wait = std::min(wait, *time_limit_ - seconds_since(started_));
    if (gathers_) {
      const double gathering = std::min(wait, k_gather_seconds);
      if (wait_for_ending(gathering)) return;
      wait -= gathering;
    }
    pollfd events[2] = {{output_.get(), POLLIN, 0}, {reports_.get(), POLLIN, 0}};
    ::poll(events, 2, milliseconds(wait));
  }

  // True also when a signal came.
  bool wait_for_ending(double seconds) const {
    pollfd event = {reports_.get(), POLLIN, 0};
    return ::poll(&event, 1, milliseconds(seconds)) != 0;
  }

  static int milliseconds(double seconds) { return static_cast<int>(std::max(0.0, seconds) * 1000.0); }

  // Reads the available output, at most `reads` times.
  void read_output(const LineSink& sink, int reads) {
    char bytes[k_read_size];
    size_t all = 0;
    gathers_ = false;
    for (int i = 0; i < reads && output_.is_open(); ++i) {
      const ssize_t count = ::read(output_.get(), bytes, sizeof bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count == 0) output_.close();
      gathers_ = all > 0 && all < pipe_size_ / 4;
      if (count <= 0) return;
      const std::string_view text(bytes, static_cast<size_t>(count));
      all += text.size();
      log_.write(text);
      if (sink) lines_.add(text, sink);
    }
  }

  // True when the tree has ended.
  bool read_report() {
    WardenReport report{};
    const ssize_t count = ::read(reports_.get(), &report, sizeof report);
    if (count < 0) return false;
    if (count > 0 && report.what == WardenReport::What::timed_out) {
      note_time_out();
      return read_report();
    }
    if (count == 0) {  // the warden was killed; the kernel kills the program, its group is ours to kill
      ::kill(-leader_, SIGKILL);
      wait_status_ = SIGKILL;
    } else {
      wait_status_ = report.value;
    }
    return true;
  }

  void finish(const LineSink& sink) {
    reap_warden();
    exit_ = stop_cause_ ? ExitReason{*stop_cause_, 0, time_limit_.value_or(0.0)} : exit_reason_of(wait_status_);
    constexpr int all_that_a_pipe_holds = 64;
    read_output(sink, all_that_a_pipe_holds);
    lines_.finish(sink);
    output_.close();
    log_.mend();
  }

  void mend_log() {
    if (seconds_since(last_mended_) < k_mend_interval_seconds) return;
    last_mended_ = SteadyClock::now();
    log_.mend();
  }

  // The warden enforces the time limit too, in case we are stopped.
  void press_on() {
    if (stop_ordered_ && seconds_since(ordered_) > grace_seconds_ + k_kill_patience_seconds + k_answer_seconds)
      end_without_warden();
    if (!time_limit_ || stop_cause_ || seconds_since(started_) < *time_limit_) return;
    note_time_out();
    order(k_order_stop);
  }

  void note_time_out() {
    if (!stop_cause_) stop_cause_ = ExitReason::Kind::timed_out;
    stop_ordered_ = true;
  }

  // It may have been stopped by SIGSTOP; SIGCONT has no effect on a running process.
  void wake_warden() const { ::kill(warden_, SIGCONT); }

  void reap_warden() {
    const auto start = SteadyClock::now();
    while (!has_ended(warden_)) {
      wake_warden();
      if (seconds_since(start) > k_kill_patience_seconds + k_answer_seconds) end_without_warden();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  // The warden does not answer: kill it, and the kernel kills the program with it.
  void end_without_warden() const {
    if (leader_ > 0) ::kill(-leader_, SIGKILL);
    ::kill(warden_, SIGKILL);
  }

  void order(char what) {
    ordered_ = SteadyClock::now();
    wake_warden();
    struct sigaction ignore = {}, before = {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignore, &before);  // the warden may just have ended
    [[maybe_unused]] const ssize_t written = ::write(orders_.get(), &what, 1);
    ::sigaction(SIGPIPE, &before, nullptr);
  }

  LogFile log_;
  Descriptor output_, orders_, reports_;
  pid_t warden_ = -1, leader_ = -1;
  SteadyClock::time_point started_ = SteadyClock::now(), last_mended_ = started_, ordered_ = started_;
  double grace_seconds_ = 0.0;
  std::optional<double> time_limit_;
  std::optional<ExitReason::Kind> stop_cause_;
  bool stop_ordered_ = false;
  bool gathers_ = false;  // output arrived, and more fits
  size_t pipe_size_ = 0;
  int wait_status_ = 0;
  LineSplitter lines_;
  std::optional<ExitReason> exit_;
};

}  // namespace

std::unique_ptr<ChildProcess> LocalRunner::start(const Command& command) {
  return std::make_unique<LocalChild>(command);
}

}  // namespace tprimat
