#pragma once

#include "comm/launcher_place.h"
#include "comm/tcp/meeting.h"

namespace tprimat::engine {

// Where ranks meet, as the environment tells that torchrun, Kubernetes or a script made: at MASTER_ADDR, MASTER_PORT.
// At the port after that where torchrun's own store holds it (TORCHELASTIC_USE_AGENT_STORE). TPRIMAT_MEETING_PORT names
// another, TPRIMAT_MEETING_TIMEOUT the seconds until all must have come. Throws Error (usage) for what is no port or
// time.
MeetingSettings read_meeting_settings(const EnvironmentReader& read, const LauncherPlace& place);

}  // namespace tprimat::engine
