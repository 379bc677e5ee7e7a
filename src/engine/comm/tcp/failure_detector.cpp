#include "comm/tcp/failure_detector.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <csignal>
#include <utility>

#include "base/check.h"

namespace tprimat::engine {
namespace {

// A message is one number: the rank that was lost, or one of these two about the sender.
constexpr int k_done = -1, k_failed = -2;
constexpr double k_farewell_seconds = 2;

}  // namespace

FailureDetector::FailureDetector(std::vector<Socket> sockets, OnLoss on_loss, double patience_seconds)
    : sockets_(std::move(sockets)),
      on_loss_(std::move(on_loss)),
      patience_(patience_seconds),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(stop_.is_open());
  sigset_t all, before;  // signals are for the threads that know what to do with them
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { watch(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void FailureDetector::leave(bool failed) {
  if (!thread_.joinable()) return;
  ::eventfd_write(stop_.descriptor(), 1);
  thread_.join();
  tell_others(failed ? k_failed : k_done);
  sockets_.clear();
}

void FailureDetector::tell_others(int message) {
  for (const Socket& socket : sockets_)
    if (socket.is_open()) send_all(socket, std::as_bytes(std::span(&message, 1)), deadline_in(k_farewell_seconds));
}

int FailureDetector::read_message(int rank) {
  Socket& socket = sockets_[static_cast<size_t>(rank)];
  int message = k_failed;
  const bool is_whole =
      receive_all(socket, std::as_writable_bytes(std::span(&message, 1)), deadline_in(k_farewell_seconds));
  socket = Socket();
  if (!is_whole || message < k_done) return rank;
  return message;
}

void FailureDetector::watch() {
  pollfd stop{stop_.descriptor(), POLLIN, 0};
  int lost = -1;
  while (lost < 0) {
    std::vector<pollfd> waiting;
    for (const Socket& socket : sockets_) waiting.push_back({socket.descriptor(), POLLIN, 0});  // closed: overlooked
    waiting.push_back(stop);
    ::poll(waiting.data(), waiting.size(), -1);
    if (waiting.back().revents != 0) return;
    for (size_t rank = 0; rank < sockets_.size() && lost < 0; ++rank)
      if (waiting[rank].revents != 0) lost = read_message(static_cast<int>(rank));
  }
  tell_others(lost);
  // A rank that waits for the lost one ends by itself, with a better place in its sentence.
  if (::poll(&stop, 1, static_cast<int>(patience_ * 1000)) != 0) return;
  on_loss_(
      fmt::format("rank {} ended before its work was done, while this rank waits or computes\n"
                  "  see the message of rank {} for the cause, or the launcher's if it was killed",
                  lost, lost));
}

}  // namespace tprimat::engine
