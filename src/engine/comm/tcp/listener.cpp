#include "comm/tcp/listener.h"

#include <poll.h>

#include <algorithm>
#include <vector>

namespace tprimat::engine {
namespace {

constexpr size_t k_max_pending = 256;
constexpr double k_hello_seconds = 10;  // for a first message

int milliseconds_left(Deadline until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1000));
}

}  // namespace

void Listener::accept_connections() {
  while (auto socket = accept_connection(socket_)) {
    pending_.push_back({std::move(*socket), deadline_in(k_hello_seconds), {}, 0});
    if (pending_.size() > k_max_pending) pending_.pop_front();
  }
}

std::optional<IncomingPeer> Listener::read_pending() {
  for (auto at = pending_.begin(); at != pending_.end();) {
    const auto count = receive_some(at->socket, std::span(at->bytes).subspan(at->count));
    at->count += count.value_or(0);
    if (at->count == k_hello_bytes) {
      const auto hello = parse_hello(at->bytes);
      Socket socket = std::move(at->socket);
      at = pending_.erase(at);
      if (hello) return IncomingPeer{std::move(socket), *hello};
    } else if (!count || SteadyClock::now() > at->deadline) {
      at = pending_.erase(at);
    } else {
      ++at;
    }
  }
  return std::nullopt;
}

void Listener::wait_for_event(Deadline until) {
  std::vector<pollfd> waiting{{socket_.descriptor(), POLLIN, 0}};
  for (const PendingConnection& connection : pending_) waiting.push_back({connection.socket.descriptor(), POLLIN, 0});
  ::poll(waiting.data(), waiting.size(), milliseconds_left(until));
}

std::optional<IncomingPeer> Listener::next(Deadline until) {
  while (true) {
    accept_connections();
    if (auto peer = read_pending()) return peer;
    if (SteadyClock::now() >= until) return std::nullopt;
    wait_for_event(until);
  }
}

}  // namespace tprimat::engine
