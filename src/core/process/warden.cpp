#include "process/warden.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>

// No allocation, no stdio, no exceptions in this file: it runs between fork() and exec() of a program that may have
// threads.
namespace tprimat {
namespace {

constexpr double k_leftover_grace_seconds = 1.0;  // for processes that outlive the program
constexpr double k_longest_wait_seconds = 86400.0;
constexpr double k_kill_again_seconds = 0.02;  // for processes that start between two rounds of SIGKILL

double now_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void reset_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void close_range_of_descriptors(unsigned int first, unsigned int last) {
  if (first > last || ::syscall(SYS_close_range, first, last, 0) == 0) return;
  rlimit open_files{};  // Linux before 5.9, and sandboxes that forbid the call
  ::getrlimit(RLIMIT_NOFILE, &open_files);
  constexpr rlim_t k_max_tried = rlim_t{1} << 20;
  const auto limit = static_cast<unsigned int>(std::min(open_files.rlim_max, k_max_tried));
  for (unsigned int number = first; number <= std::min(last, limit); ++number) ::close(static_cast<int>(number));
}

// Other pipes of ours must not stay open here, or their readers would never see the end of file.
void close_other_descriptors(const WardenJob& job) {
  int keep[] = {job.output, job.orders, job.reports, job.kept_open};
  std::sort(std::begin(keep), std::end(keep));
  unsigned int first = 3;
  for (const int descriptor : keep) {
    if (descriptor < 0) continue;
    close_range_of_descriptors(first, static_cast<unsigned int>(descriptor) - 1);
    first = static_cast<unsigned int>(descriptor) + 1;
  }
  close_range_of_descriptors(first, ~0U);
}

void report(int descriptor, WardenReport::What what, int value) {
  const WardenReport message{what, value};
  while (::write(descriptor, &message, sizeof message) < 0 && errno == EINTR) {
  }
}

[[noreturn]] void become_program(const WardenJob& job, pid_t warden, int failure) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != warden) ::_exit(127);  // the warden died before the line above
  reset_signals();
  const int input = ::open(job.input, O_RDONLY);
  if (input >= 0 && (job.working_directory == nullptr || ::chdir(job.working_directory) == 0)) {
    ::dup2(input, STDIN_FILENO);
    ::dup2(job.output, STDOUT_FILENO);
    ::dup2(job.output, STDERR_FILENO);
    if (input > STDERR_FILENO) ::close(input);
    ::execve(job.program, job.argv, job.environment);
  }
  const int reason = errno;
  [[maybe_unused]] const ssize_t written = ::write(failure, &reason, sizeof reason);
  ::_exit(127);
}

class Warden {
 public:
  explicit Warden(const WardenJob& job) : job_(job) {}

  [[noreturn]] void run() {
    settle();
    start_program();
    while (wait_for_event(), !reap()) press_on();
    report(job_.reports, WardenReport::What::ended, leader_status_);
    ::_exit(0);
  }

 private:
  enum class Phase { running, stopping, killing };

  void settle() {
    ::setsid();
    ::prctl(PR_SET_NAME, "tprimat-warden");
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    reset_signals();
    ::signal(SIGPIPE, SIG_IGN);
    close_other_descriptors(job_);
    sigset_t child_ended;
    ::sigemptyset(&child_ended);
    ::sigaddset(&child_ended, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &child_ended, nullptr);
    child_events_ = ::signalfd(-1, &child_ended, SFD_CLOEXEC | SFD_NONBLOCK);
  }

  void start_program() {
    int failure[2];
    if (::pipe2(failure, O_CLOEXEC) != 0) give_up(errno);
    const pid_t warden = ::getpid();
    leader_ = ::fork();
    if (leader_ < 0) give_up(errno);
    if (leader_ == 0) become_program(job_, warden, failure[1]);
    ::setpgid(leader_, leader_);
    ::close(failure[1]);
    int reason = 0;
    const bool failed = ::read(failure[0], &reason, sizeof reason) == static_cast<ssize_t>(sizeof reason);
    ::close(failure[0]);
    if (failed) give_up(reason);
    ::close(job_.output);  // only the program's tree may keep the stream open
    limit_ = now_seconds() + job_.time_limit_seconds;
    report(job_.reports, WardenReport::What::started, leader_);
  }

  [[noreturn]] void give_up(int reason) {
    report(job_.reports, WardenReport::What::failed_to_start, reason);
    ::_exit(0);
  }

  void wait_for_event() {
    pollfd events[2] = {{child_events_, POLLIN, 0}, {orphaned_ ? -1 : job_.orders, POLLIN, 0}};
    ::poll(events, 2, milliseconds_to_wait());
    signalfd_siginfo ignored;
    while (::read(child_events_, &ignored, sizeof ignored) > 0) {
    }
    if (events[1].revents != 0) take_order();
  }

  bool has_limit() const { return job_.time_limit_seconds > 0.0; }

  int milliseconds_to_wait() const {
    if (phase_ == Phase::running && !has_limit()) return -1;
    const double until = phase_ == Phase::running ? limit_ : deadline_;
    const double wait = phase_ == Phase::killing ? k_kill_again_seconds : until - now_seconds();
    return static_cast<int>(std::clamp(wait, 0.0, k_longest_wait_seconds) * 1000.0) + 1;
  }

  void take_order() {
    char order = 0;
    const ssize_t count = ::read(job_.orders, &order, 1);
    if (count == 0) {
      orphaned_ = true;
      begin_stop(job_.orphaned_grace_seconds);
    } else if (count == 1 && order == k_order_stop) {
      begin_stop(job_.grace_seconds);
    } else if (count == 1 && order == k_order_kill) {
      begin_kill();
    }
  }

  // Collects all that ended. True if nothing is left, or only processes that cannot be killed.
  bool reap() {
    int status = 0;
    pid_t ended = 0;
    while ((ended = ::waitpid(-1, &status, WNOHANG)) > 0)
      if (ended == leader_) leader_ended(status);
    const bool no_children = ended < 0 && errno == ECHILD;
    return no_children || (phase_ == Phase::killing && now_seconds() > deadline_);
  }

  void leader_ended(int status) {
    leader_status_ = status;
    leader_gone_ = true;
    if (phase_ != Phase::killing) begin_stop(k_leftover_grace_seconds);
  }

  void press_on() {
    if (phase_ == Phase::running && has_limit() && now_seconds() >= limit_) {
      report(job_.reports, WardenReport::What::timed_out, 0);
      begin_stop(job_.grace_seconds);
    } else if (phase_ == Phase::stopping && now_seconds() >= deadline_) {
      begin_kill();
    } else if (phase_ == Phase::killing) {
      signal_tree(SIGKILL);
    }
  }

  void begin_stop(double grace_seconds) {
    const double deadline = now_seconds() + grace_seconds;
    deadline_ = phase_ == Phase::stopping ? std::min(deadline_, deadline) : deadline;
    if (phase_ == Phase::killing) return;
    phase_ = Phase::stopping;
    signal_tree(SIGTERM);
    signal_tree(SIGCONT);  // a stopped process would not receive the signal
  }

  void begin_kill() {
    if (phase_ != Phase::killing) deadline_ = now_seconds() + k_kill_patience_seconds;
    phase_ = Phase::killing;
    signal_tree(SIGKILL);
  }

  // The program's process group, and our own children, among them adopted ones that left the group.
  void signal_tree(int number) {
    if (!leader_gone_) ::kill(-leader_, number);
    char list[4096];
    const ssize_t length = read_children(list, sizeof list);
    pid_t child = 0;
    for (ssize_t i = 0; i < length; ++i) {
      if (list[i] >= '0' && list[i] <= '9') {
        child = child * 10 + (list[i] - '0');
      } else if (child != 0) {
        if (child != leader_ || leader_gone_) ::kill(child, number);
        child = 0;
      }
    }
  }

  // "123 124 " from the kernel; -1 where it was built without this list.
  static ssize_t read_children(char* list, size_t size) {
    const int file = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    const ssize_t length = ::read(file, list, size);
    ::close(file);
    return length;
  }

  const WardenJob& job_;
  pid_t leader_ = -1;
  int child_events_ = -1;
  int leader_status_ = SIGKILL;  // a status as from waitpid; for a program that survives SIGKILL
  bool leader_gone_ = false, orphaned_ = false;
  Phase phase_ = Phase::running;
  double limit_ = 0.0;     // of the program's time
  double deadline_ = 0.0;  // of the phase
};

}  // namespace

void run_warden(const WardenJob& job) { Warden(job).run(); }

}  // namespace tprimat
