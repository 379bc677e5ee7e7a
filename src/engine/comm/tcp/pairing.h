#pragma once

#include <functional>
#include <vector>

#include "comm/tcp/meeting.h"
#include "comm/tcp/reception.h"

namespace tprimat::engine {

// The second half of a meeting: each rank connects to every lower one, where the table says that it listens.
class Pairing {
 public:
  Pairing(Reception& reception, const MeetingSettings& settings, const RunToken& token)
      : reception_(reception), settings_(settings), token_(token), peers_(static_cast<size_t>(settings.size)) {}

  void connect_to_rank(int rank, const HostAddress& place);
  // Those of all higher ranks. check() throws where waiting is in vain.
  void accept_higher_ranks(Deadline deadline, const std::function<void()>& check);
  // Of lower ranks: that they took this rank's connection.
  void hear_lower_ranks(Deadline deadline);

  std::vector<Socket> take_peers() { return std::move(peers_); }

 private:
  bool is_due(const MeetingHello& hello) const;
  void keep(int rank, Socket socket) { peers_[static_cast<size_t>(rank)] = std::move(socket); }
  std::vector<int> absent_ranks() const;

  Reception& reception_;
  const MeetingSettings& settings_;
  RunToken token_;
  std::vector<Socket> peers_;
};

}  // namespace tprimat::engine
