#include "comm/tcp/failure_detector.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <csignal>
#include <utility>

#include "base/check.h"

namespace tprimat::engine {
namespace {

constexpr double k_farewell_seconds = 2;

// Signals are for the threads that know what to do with them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

FailureDetector::FailureDetector(std::vector<Socket> sockets, OnLoss on_loss, double patience_seconds)
    : on_loss_(std::move(on_loss)), patience_(patience_seconds), stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(stop_.is_open());
  for (size_t rank = 0; rank < sockets.size(); ++rank)
    if (sockets[rank].is_open()) lines_.push_back({std::move(sockets[rank]), static_cast<int>(rank), {}, 0});
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { watch(); });
}

FailureDetector::~FailureDetector() { leave(true); }

void FailureDetector::leave(bool failed) {
  if (!thread_.joinable()) return;
  ::eventfd_write(stop_.descriptor(), 1);
  thread_.join();
  const RendezvousMessage message{failed ? RendezvousMessage::Verdict::failed : RendezvousMessage::Verdict::goodbye};
  for (const Line& line : lines_)
    if (line.socket.is_open()) send_all(line.socket, print_message(message), deadline_in(k_farewell_seconds));
  lines_.clear();
}

bool FailureDetector::wait_for_event(int milliseconds) {
  std::vector<pollfd> waiting{{stop_.descriptor(), POLLIN, 0}};
  for (const Line& line : lines_) waiting.push_back({line.socket.descriptor(), POLLIN, 0});  // closed: overlooked
  ::poll(waiting.data(), waiting.size(), milliseconds);
  return waiting.front().revents == 0;
}

int FailureDetector::look_at(Line& line) {
  if (!line.socket.is_open()) return -1;
  const auto count = receive_some(line.socket, std::span(line.bytes).subspan(line.count));
  line.count += count.value_or(0);
  if (count && line.count < k_message_bytes) return -1;
  const auto message = count ? parse_message(line.bytes) : std::nullopt;
  line.socket = Socket();
  if (message && message->verdict == RendezvousMessage::Verdict::goodbye) return -1;
  const bool told = message && message->verdict == RendezvousMessage::Verdict::failed && message->number > 0;
  return told ? static_cast<int>(message->number) : line.rank;
}

void FailureDetector::tell_others(int lost) {
  const RendezvousMessage message{RendezvousMessage::Verdict::failed, static_cast<uint32_t>(lost)};
  for (const Line& line : lines_)
    if (line.socket.is_open()) send_all(line.socket, print_message(message), deadline_in(k_farewell_seconds));
}

void FailureDetector::watch() {
  int lost = -1;
  while (lost < 0) {
    if (!wait_for_event(-1)) return;
    for (Line& line : lines_)
      if (lost < 0) lost = look_at(line);
  }
  tell_others(lost);
  // A rank that waits for the lost one ends by itself, with a better place in its sentence.
  pollfd waiting{stop_.descriptor(), POLLIN, 0};
  if (::poll(&waiting, 1, static_cast<int>(patience_ * 1000)) != 0) return;
  on_loss_(
      fmt::format("rank {} ended before its work was done, while this rank waits or computes\n"
                  "  see the message of rank {} for the cause, or the launcher's if it was killed",
                  lost, lost));
}

}  // namespace tprimat::engine
