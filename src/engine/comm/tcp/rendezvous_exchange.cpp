#include "comm/tcp/rendezvous_exchange.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/build_info.h"
#include "base/error.h"

namespace tprimat::engine {
namespace {

constexpr size_t k_max_named = 16;  // ranks in a sentence

}  // namespace

std::string rendezvous_address(const RendezvousSettings& settings) {
  return fmt::format("{}:{}", settings.host, settings.port);
}

void fail_rendezvous(const RendezvousSettings& settings, const std::string& what, const std::string& hint) {
  throw Error(
      Problem{what, fmt::format("rank {} at the rendezvous, {}", settings.rank, rendezvous_address(settings)), hint},
      ExitStatus::work_failed);
}

std::string program_version() {
  const BuildInfo info = build_info();
  std::string version(info.version);
  if (!info.revision.empty()) version += "+" + std::string(info.revision.substr(0, 12));
  return version;
}

bool has_left(const Socket& socket) {
  std::byte byte;
  const ssize_t count = ::recv(socket.descriptor(), &byte, 1, MSG_PEEK);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

bool has_message(const Socket& socket) {
  std::array<std::byte, k_message_bytes> bytes{};
  return ::recv(socket.descriptor(), bytes.data(), bytes.size(), MSG_PEEK) == static_cast<ssize_t>(bytes.size());
}

bool send_message(const Socket& socket, const RendezvousMessage& message) {
  return send_all(socket, print_message(message), deadline_in(k_answer_seconds));
}

std::optional<RendezvousMessage> receive_message(const Socket& socket, Deadline deadline) {
  std::array<std::byte, k_message_bytes> bytes{};
  if (!receive_all(socket, bytes, deadline)) return std::nullopt;
  return parse_message(bytes);
}

std::string list_ranks(const std::vector<int>& ranks) {
  const std::vector<int> named(ranks.begin(), ranks.begin() + static_cast<long>(std::min(ranks.size(), k_max_named)));
  return fmt::format("rank{} {}{}", ranks.size() == 1 ? "" : "s", fmt::join(named, ", "),
                     ranks.size() > k_max_named ? ", ..." : "");
}

}  // namespace tprimat::engine
