#include "comm/tcp/meeting_talk.h"

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

std::string meeting_place_of(const MeetingSettings& settings) {
  return fmt::format("{}:{}", settings.host, settings.port);
}

void fail_to_meet(const MeetingSettings& settings, const std::string& what, const std::string& hint) {
  throw Error(
      Problem{what, fmt::format("rank {} at the meeting of the ranks, {}", settings.rank, meeting_place_of(settings)),
              hint},
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

bool has_said_a_word(const Socket& socket) {
  std::array<std::byte, k_word_bytes> bytes{};
  return ::recv(socket.descriptor(), bytes.data(), bytes.size(), MSG_PEEK) == static_cast<ssize_t>(bytes.size());
}

bool say(const Socket& socket, const MeetingWord& word) {
  return send_all(socket, print_word(word), deadline_in(k_answer_seconds));
}

std::optional<MeetingWord> hear(const Socket& socket, Deadline deadline) {
  std::array<std::byte, k_word_bytes> bytes{};
  if (!receive_all(socket, bytes, deadline)) return std::nullopt;
  return parse_word(bytes);
}

std::string list_ranks(const std::vector<int>& ranks) {
  const std::vector<int> named(ranks.begin(), ranks.begin() + static_cast<long>(std::min(ranks.size(), k_max_named)));
  return fmt::format("rank{} {}{}", ranks.size() == 1 ? "" : "s", fmt::join(named, ", "),
                     ranks.size() > k_max_named ? ", ..." : "");
}

}  // namespace tprimat::engine
