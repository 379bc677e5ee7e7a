#include "comm/tcp/rendezvous_messages.h"

#include <poll.h>

#include <algorithm>
#include <vector>

namespace tprimat::engine {
namespace {

constexpr size_t k_max_pending = 256;
constexpr double k_hello_seconds = 10;  // for a first message

// Printable up to the first zero; anything else is of no program of ours.
bool is_text(const FixedText& text) {
  const auto end = std::ranges::find(text, '\0');
  return end != text.end() && std::all_of(text.begin(), end, [](char each) { return each > ' ' && each < 127; });
}

}  // namespace

bool is_valid(const RendezvousHello& hello) {
  using Purpose = RendezvousHello::Purpose;
  return hello.protocol == RendezvousHello().protocol &&
         (hello.purpose == Purpose::join || hello.purpose == Purpose::pair) && hello.size <= k_max_tcp_ranks &&
         hello.rank < hello.size && hello.to < hello.size && hello.port <= 0xffff && is_text(hello.version);
}

bool is_valid(const RendezvousMessage& message) {
  using Verdict = RendezvousMessage::Verdict;
  return message.protocol == RendezvousMessage().protocol && message.verdict >= Verdict::noted &&
         message.verdict <= Verdict::missing && is_text(message.version);
}

bool is_valid(const RendezvousPlace& place) { return is_text(place.host) && place.port > 0 && place.port <= 0xffff; }

void Listener::accept_connections() {
  while (auto socket = accept_connection(socket_)) {
    pending_.push_back({std::move(*socket), deadline_in(k_hello_seconds), {}, 0});
    if (pending_.size() > k_max_pending) pending_.pop_front();
  }
}

std::optional<IncomingPeer> Listener::read_pending() {
  for (auto at = pending_.begin(); at != pending_.end();) {
    const auto count = receive_some(at->socket, message_bytes(at->hello).subspan(at->count));
    at->count += count.value_or(0);
    const bool is_whole = at->count == sizeof(RendezvousHello);
    if (!is_whole && count && SteadyClock::now() <= at->deadline) {
      ++at;
      continue;
    }
    IncomingPeer peer{std::move(at->socket), at->hello};
    at = pending_.erase(at);
    if (is_whole && is_valid(peer.hello)) return peer;
  }
  return std::nullopt;
}

void Listener::wait_for_event(Deadline until) {
  std::vector<pollfd> waiting{{socket_.descriptor(), POLLIN, 0}};
  for (const PendingConnection& connection : pending_) waiting.push_back({connection.socket.descriptor(), POLLIN, 0});
  ::poll(waiting.data(), waiting.size(), milliseconds_until(until));
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
