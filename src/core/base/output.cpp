#include "base/output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

namespace tprimat {
namespace {

constexpr size_t k_max_kept = size_t{1} << 16;

std::string g_kept;    // of stdout; only the main thread prints results
int g_lost_error = 0;  // errno of the first failed write to stdout

bool is_passing(int descriptor) {
  if (errno == EINTR) return true;
  if (errno != EAGAIN && errno != EWOULDBLOCK) return false;
  pollfd full{descriptor, POLLOUT, 0};  // another process that shares the stream made it non-blocking
  return ::poll(&full, 1, -1) >= 0 || errno == EINTR;
}

// 0, or the error.
int write_whole(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && !is_passing(descriptor)) return errno;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

void end_by_pipe_signal() {
  restore_pipe_signal();
  sigset_t pipe;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
  ::raise(SIGPIPE);
}

// Writes the first bytes of the buffer.
void write_kept(size_t bytes) {
  const int error = write_whole(STDOUT_FILENO, std::string_view(g_kept).substr(0, bytes));
  g_kept.erase(0, bytes);
  if (error == EPIPE) end_by_pipe_signal();
  if (g_lost_error == 0) g_lost_error = error;
}

}  // namespace

void open_standard_streams() {
  constexpr std::array k_modes = {O_WRONLY, O_RDONLY, O_RDONLY};  // so that reading stdin and writing the others fail
  for (int descriptor = 0; descriptor < static_cast<int>(k_modes.size()); ++descriptor)
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
      ::open("/dev/null", k_modes[static_cast<size_t>(descriptor)]);  // takes the lowest number that is free: this one
  ::signal(SIGPIPE, SIG_IGN);
}

void restore_pipe_signal() { ::signal(SIGPIPE, SIG_DFL); }

// Whole lines, so that notes on stderr never stand within one where both go to one file.
void write_stdout(std::string_view text) {
  g_kept += text;
  const bool is_full = g_kept.size() >= k_max_kept;
  if (is_full || (g_kept.ends_with('\n') && ::isatty(STDOUT_FILENO) == 1)) write_kept(g_kept.rfind('\n') + 1);
}

const char* flush_stdout() {
  write_kept(g_kept.size());
  return g_lost_error != 0 ? std::strerror(g_lost_error) : nullptr;
}

bool write_stderr(std::string_view text) noexcept { return write_whole(STDERR_FILENO, text) == 0; }

}  // namespace tprimat
