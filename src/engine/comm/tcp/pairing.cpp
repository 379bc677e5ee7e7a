#include "comm/tcp/pairing.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "comm/tcp/rendezvous_exchange.h"

namespace tprimat::engine {
namespace {

constexpr double k_pairing_slice = 0.1;   // seconds between two looks at those who wait
constexpr double k_connect_seconds = 60;  // between two ranks whose places are known
constexpr const char* k_port_hint =
    "ranks exchange data on ports chosen by the system: open the ephemeral ports between the machines";

}  // namespace

void Pairing::connect_to_rank(int rank, const HostAddress& place) {
  const Deadline deadline = deadline_in(std::min(settings_.seconds, k_connect_seconds));
  std::string reason;
  while (true) {
    if (auto socket = connect_to(place, deadline, reason)) {
      RendezvousHello hello{RendezvousHello::Purpose::pair, static_cast<uint32_t>(settings_.size),
                            static_cast<uint32_t>(settings_.rank), static_cast<uint32_t>(rank)};
      hello.token = token_;
      hello.version = program_version();
      if (send_all(*socket, print_hello(hello), deadline)) return keep(rank, std::move(*socket));
    }
    if (SteadyClock::now() >= deadline)
      fail_rendezvous(settings_, fmt::format("cannot connect to rank {} at {}: {}", rank, to_text(place), reason),
                      k_port_hint);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

void Pairing::accept_higher_ranks(Deadline deadline, const std::function<void()>& check) {
  for (int missing = settings_.size - 1 - settings_.rank; missing > 0;) {
    if (auto peer = listener_.next(deadline_in(k_pairing_slice)); peer && is_due(peer->hello)) {
      if (!send_message(peer->socket, {RendezvousMessage::Verdict::noted})) continue;
      keep(static_cast<int>(peer->hello.rank), std::move(peer->socket));
      --missing;
    }
    check();
    if (SteadyClock::now() >= deadline)
      fail_rendezvous(settings_, fmt::format("{} did not connect to this rank", list_ranks(absent_ranks())),
                      k_port_hint);
  }
}

void Pairing::confirm_lower_ranks(Deadline deadline) {
  for (int rank = 0; rank < settings_.rank; ++rank) {
    const auto message = receive_message(peers_[static_cast<size_t>(rank)], deadline);
    if (!message || message->verdict != RendezvousMessage::Verdict::noted)
      fail_rendezvous(settings_, fmt::format("rank {} did not accept this rank's connection", rank),
                      "see its own message for the cause");
  }
}

bool Pairing::is_due(const RendezvousHello& hello) const {
  return hello.purpose == RendezvousHello::Purpose::pair && hello.token == token_ &&
         hello.size == static_cast<uint32_t>(settings_.size) && hello.to == static_cast<uint32_t>(settings_.rank) &&
         hello.rank > hello.to && !peers_[hello.rank].is_open();
}

std::vector<int> Pairing::absent_ranks() const {
  std::vector<int> ranks;
  for (int rank = settings_.rank + 1; rank < settings_.size; ++rank)
    if (!peers_[static_cast<size_t>(rank)].is_open()) ranks.push_back(rank);
  return ranks;
}

}  // namespace tprimat::engine
