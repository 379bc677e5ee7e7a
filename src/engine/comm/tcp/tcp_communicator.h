#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/launcher_place.h"
#include "comm/tcp/failure_detector.h"
#include "comm/tcp/rendezvous.h"

namespace tprimat::engine {

// All ranks that have met, over their sockets.
std::unique_ptr<Communicator> make_tcp_communicator(ConnectedRanks met, FailureDetector::OnLoss on_loss);

// Those that the launcher of this process started. Once in a process; a rank that is lost ends this one.
std::unique_ptr<Communicator> make_tcp_world(const RendezvousSettings& settings);

// Ends this process with the status, and the others with a sentence of their own, while make_tcp_world's ranks are
// there; else does nothing.
void abort_tcp(int status);

}  // namespace tprimat::engine
