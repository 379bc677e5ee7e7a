#include "comm/tcp/reception.h"

#include <poll.h>

#include <algorithm>
#include <vector>

namespace tprimat::engine {
namespace {

constexpr size_t k_max_visitors = 256;
constexpr double k_patience = 10;  // seconds, for a first message

int milliseconds_left(Deadline until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1000));
}

}  // namespace

void Reception::let_in() {
  while (auto socket = accept_connection(listener_)) {
    visitors_.push_back({std::move(*socket), deadline_in(k_patience), {}, 0});
    if (visitors_.size() > k_max_visitors) visitors_.pop_front();
  }
}

std::optional<Guest> Reception::listen_to_visitors() {
  for (auto at = visitors_.begin(); at != visitors_.end();) {
    const auto count = receive_some(at->socket, std::span(at->said).subspan(at->count));
    at->count += count.value_or(0);
    if (at->count == k_hello_bytes) {
      const auto hello = parse_hello(at->said);
      Socket socket = std::move(at->socket);
      at = visitors_.erase(at);
      if (hello) return Guest{std::move(socket), *hello};
    } else if (!count || SteadyClock::now() > at->patience) {
      at = visitors_.erase(at);
    } else {
      ++at;
    }
  }
  return std::nullopt;
}

void Reception::await_stir(Deadline until) {
  std::vector<pollfd> waiting{{listener_.descriptor(), POLLIN, 0}};
  for (const Visitor& visitor : visitors_) waiting.push_back({visitor.socket.descriptor(), POLLIN, 0});
  ::poll(waiting.data(), waiting.size(), milliseconds_left(until));
}

std::optional<Guest> Reception::next(Deadline until) {
  while (true) {
    let_in();
    if (auto guest = listen_to_visitors()) return guest;
    if (SteadyClock::now() >= until) return std::nullopt;
    await_stir(until);
  }
}

}  // namespace tprimat::engine
