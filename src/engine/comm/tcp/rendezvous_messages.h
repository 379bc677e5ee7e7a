#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/tcp/socket.h"

namespace tprimat::engine {

// The messages of ranks until all are connected. Every message has a fixed length, so a stranger's bytes cost neither
// memory nor time. A message that is not ours, or of another protocol, parses to nothing.
using RunToken = std::array<uint8_t, 16>;

constexpr uint32_t k_rendezvous_protocol = 1;
constexpr int k_max_tcp_ranks = 1 << 14;  // each has a socket to every other

// The first message on a connection.
struct RendezvousHello {
  enum class Purpose : uint32_t { join = 1, pair = 2 };  // sent to rank 0; sent to every lower rank, with the token
  Purpose purpose = Purpose::join;
  uint32_t size = 0, rank = 0, to = 0;
  uint16_t port = 0;      // join: where this rank listens
  uint64_t run = 0;       // hash of what the launcher calls this run
  RunToken token{};       // pair: the one that rank 0 drew
  std::string version{};  // of the program
  bool operator==(const RendezvousHello&) const = default;
};
constexpr size_t k_hello_bytes = 96;
std::array<std::byte, k_hello_bytes> print_hello(const RendezvousHello& hello);
std::optional<RendezvousHello> parse_hello(std::span<const std::byte> bytes);

// Every later message, in either direction.
struct RendezvousMessage {
  enum class Verdict : uint32_t {
    noted = 1,      // rank 0 waits for the others
    welcome,        // all have come; token and table follow
    ready,          // this rank has all its connections
    go,             // and so have all
    goodbye,        // the end of a rank that is done
    failed,         // the end of a rank that failed: `number`
    other_version,  // of rank 0's program: `version`
    other_size,     // of rank 0's group: `number`
    other_run,
    rank_taken,
    missing,  // `number` ranks have not come in time, the first is `first`
  };
  Verdict verdict = Verdict::noted;
  uint32_t number = 0, first = 0;
  std::string version{};
  bool operator==(const RendezvousMessage&) const = default;
};
constexpr size_t k_message_bytes = 56;
std::array<std::byte, k_message_bytes> print_message(const RendezvousMessage& message);
std::optional<RendezvousMessage> parse_message(std::span<const std::byte> bytes);

// Where each rank listens, as rank 0 saw it; rank 0's own place is empty.
struct RendezvousTable {
  RunToken token{};
  std::vector<HostAddress> places;
  bool operator==(const RendezvousTable&) const = default;
};
size_t table_bytes(int ranks);
std::vector<std::byte> print_table(const RendezvousTable& table);
std::optional<RendezvousTable> parse_table(std::span<const std::byte> bytes, int ranks);

}  // namespace tprimat::engine
