#pragma once

#include <string>
#include <vector>

#include "comm/launcher_place.h"
#include "comm/tcp/socket.h"

namespace tprimat::engine {

// How the ranks that a launcher started find each other without MPI. Rank 0 listens at a port that all know. The others
// come, say who they are and where they listen themselves, and when all are there rank 0 hands out the table of all
// places and a token that it drew. Then every rank connects to every lower one, and shows the token; what
// strangers say is ignored.
struct RendezvousSettings {
  int rank = 0, size = 1;
  std::string host;  // of rank 0, by name or number
  int port = 0;
  double seconds = 300;      // until all have come, or the rendezvous fails
  bool one_machine = false;  // all ranks: nobody listens to other machines
  std::string run;           // what the launcher calls this run; ranks of another one are refused
};

// Where ranks meet, as the environment tells that torchrun, Kubernetes or a script made: at MASTER_ADDR, MASTER_PORT.
// At the port after that where torchrun's own store holds it (TORCHELASTIC_USE_AGENT_STORE). TPRIMAT_RENDEZVOUS_PORT
// names another, TPRIMAT_RENDEZVOUS_TIMEOUT the seconds until all must have come. Throws Error (usage) for what is no
// port or time.
RendezvousSettings read_rendezvous_settings(const EnvironmentReader& read, const LauncherPlace& place);

struct ConnectedRanks {
  int rank = 0, size = 1;
  std::vector<Socket> peers;     // to each rank; the own one is closed
  std::vector<Socket> controls;  // of rank 0 to each rank, of the others to rank 0: tell that a rank has gone
};

// Throws Error that names the ranks that did not come, or why this rank was refused.
ConnectedRanks connect_ranks(const RendezvousSettings& settings);

// The two sides of it: rank 0, which listens already, and the others.
ConnectedRanks rendezvous_as_first(Socket listener, const RendezvousSettings& settings);
ConnectedRanks rendezvous_as_other(const RendezvousSettings& settings);

}  // namespace tprimat::engine
