#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/tcp/meeting.h"

namespace tprimat::engine {

// What both sides of a meeting need to talk.
constexpr double k_answer_seconds = 20;  // for words that are due at once

std::string meeting_place_of(const MeetingSettings& settings);  // "node1:29500"
[[noreturn]] void fail_to_meet(const MeetingSettings& settings, const std::string& what, const std::string& hint);
std::string program_version();

// Without taking away what was said.
bool has_left(const Socket& socket);
bool has_said_a_word(const Socket& socket);

bool say(const Socket& socket, const MeetingWord& word);
std::optional<MeetingWord> hear(const Socket& socket, Deadline deadline);

std::string list_ranks(const std::vector<int>& ranks);  // "ranks 1, 3"

}  // namespace tprimat::engine
