#include <chrono>
#include <thread>

#include "device/gpu/context.h"

namespace tprimat::engine::gpu {
namespace {

using WaitClock = std::chrono::steady_clock;
constexpr auto k_between_looks = std::chrono::milliseconds(100);

// A waiting host spins in the runtime's own calls too.
template <class Ask>
Status watch(PeerWatch& peers, const Ask& ask) {
  Status status = ask();
  if (status != k_not_ready) return status;
  for (auto next_look = WaitClock::now() + k_between_looks; status == k_not_ready; status = ask()) {
    std::this_thread::yield();
    if (WaitClock::now() < next_look) continue;
    peers.look();
    next_look = WaitClock::now() + k_between_looks;
  }
  driver::ignore(driver::last_error());  // "not ready" is no failure that a library should find later
  return status;
}

}  // namespace

void wait_for(Stream stream, std::source_location where) {
  PeerWatch* const peers = context().peers;
  check(peers == nullptr ? driver::finish_stream(stream) : watch(*peers, [&] { return driver::ask_stream(stream); }),
        where);
}

void wait_for(Event event, std::source_location where) {
  PeerWatch* const peers = context().peers;
  check(peers == nullptr ? driver::finish_event(event) : watch(*peers, [&] { return driver::ask_event(event); }),
        where);
}

}  // namespace tprimat::engine::gpu
