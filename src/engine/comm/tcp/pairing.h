#pragma once

#include <functional>
#include <vector>

#include "comm/tcp/listener.h"
#include "comm/tcp/rendezvous.h"

namespace tprimat::engine {

// The second half of a rendezvous: each rank connects to every lower one, where the table says that it listens.
class Pairing {
 public:
  Pairing(Listener& listener, const RendezvousSettings& settings, const RunToken& token)
      : listener_(listener), settings_(settings), token_(token), peers_(static_cast<size_t>(settings.size)) {}

  void connect_to_rank(int rank, const HostAddress& place);
  // Those of all higher ranks. check() throws where waiting is in vain.
  void accept_higher_ranks(Deadline deadline, const std::function<void()>& check);
  // Of lower ranks: that they took this rank's connection.
  void confirm_lower_ranks(Deadline deadline);

  std::vector<Socket> take_peers() { return std::move(peers_); }

 private:
  bool is_due(const RendezvousHello& hello) const;
  void keep(int rank, Socket socket) { peers_[static_cast<size_t>(rank)] = std::move(socket); }
  std::vector<int> absent_ranks() const;

  Listener& listener_;
  const RendezvousSettings& settings_;
  RunToken token_;
  std::vector<Socket> peers_;
};

}  // namespace tprimat::engine
