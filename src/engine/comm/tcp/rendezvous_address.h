#pragma once

#include "comm/launcher_place.h"
#include "comm/tcp/rendezvous.h"

namespace tprimat::engine {

// Where ranks meet, as the environment tells that torchrun, Kubernetes or a script made: at MASTER_ADDR, MASTER_PORT.
// At the port after that where torchrun's own store holds it (TORCHELASTIC_USE_AGENT_STORE). TPRIMAT_RENDEZVOUS_PORT
// names another, TPRIMAT_RENDEZVOUS_TIMEOUT the seconds until all must have come. Throws Error (usage) for what is no
// port or time.
RendezvousSettings read_rendezvous_settings(const EnvironmentReader& read, const LauncherPlace& place);

}  // namespace tprimat::engine
