#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/tcp/rendezvous.h"

namespace tprimat::engine {

// Messages that both sides of a rendezvous exchange.
constexpr double k_answer_seconds = 20;  // for messages that are due at once

std::string rendezvous_address(const RendezvousSettings& settings);  // "node1:29500"
[[noreturn]] void fail_rendezvous(const RendezvousSettings& settings, const std::string& what, const std::string& hint);
std::string program_version();

// Peek: neither removes a message.
bool has_left(const Socket& socket);
bool has_message(const Socket& socket);

bool send_message(const Socket& socket, const RendezvousMessage& message);
std::optional<RendezvousMessage> receive_message(const Socket& socket, Deadline deadline);

std::string list_ranks(const std::vector<int>& ranks);  // "ranks 1, 3"

}  // namespace tprimat::engine
