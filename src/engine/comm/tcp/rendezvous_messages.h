#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <optional>
#include <type_traits>

#include "comm/tcp/socket.h"

namespace tprimat::engine {

constexpr int k_max_tcp_ranks = 1 << 14;  // each has a socket to every other

// The messages of ranks until all are connected travel as they lie in memory. Each has a fixed length, so a stranger's
// bytes cost neither memory nor time, and begins with the protocol's number, which another order of bytes changes.
using RunToken = std::array<uint8_t, 16>;
using FixedText = std::array<char, 40>;  // zeros follow it

// The first message on a connection.
struct RendezvousHello {
  enum class Purpose : uint32_t { join = 1, pair = 2 };  // sent to rank 0; sent to every lower rank, with the token
  uint64_t protocol = 0x32'4b4e'4152'5054;               // "TPRANK2"
  Purpose purpose = Purpose::join;
  uint32_t size = 0, rank = 0, to = 0;
  uint64_t port = 0;    // join: where this rank listens
  uint64_t run = 0;     // hash of the launcher's name for this run
  RunToken token{};     // pair: the one that rank 0 drew
  FixedText version{};  // of the program
};

// Every later message, in either direction.
struct RendezvousMessage {
  enum class Verdict : uint32_t {
    noted = 1,      // rank 0 waits for the others
    welcome,        // all have come; token and table follow
    ready,          // this rank has all its connections
    go,             // and so have all
    other_version,  // of rank 0's program: `version`
    other_size,     // of rank 0's group: `number`
    other_run,
    rank_taken,
    missing,  // `number` ranks have not come in time, the first is `first`
  };
  uint64_t protocol = 0x32'4452'4f57'5054;  // "TPWORD2"
  Verdict verdict = Verdict::noted;
  uint32_t number = 0, first = 0, reserved = 0;
  FixedText version{};
};

// Where a rank listens, as rank 0 saw it.
struct RendezvousPlace {
  FixedText host{};
  uint64_t port = 0;
};

// Whether received bytes are a message of ours, within its bounds.
bool is_valid(const RendezvousHello& hello);
bool is_valid(const RendezvousMessage& message);
bool is_valid(const RendezvousPlace& place);

// How a message travels.
template <class Message>
std::span<std::byte> message_bytes(Message& message) {
  static_assert(std::has_unique_object_representations_v<Message>);
  return std::as_writable_bytes(std::span(&message, 1));
}

// A connection whose first message was a valid hello.
struct IncomingPeer {
  Socket socket;
  RendezvousHello hello;
};

// Accepts connections and reads their first message. A connection that sends anything else is closed, one that sends
// nothing is dropped after a timeout, and too many silent ones displace the oldest.
class Listener {
 public:
  explicit Listener(Socket socket) : socket_(std::move(socket)) {}

  // Nothing when no peer came in time.
  std::optional<IncomingPeer> next(Deadline until);
  const Socket& socket() const { return socket_; }

 private:
  struct PendingConnection {
    Socket socket;
    Deadline deadline;
    RendezvousHello hello;
    size_t count = 0;  // of its bytes received
  };
  void accept_connections();
  void wait_for_event(Deadline until);
  std::optional<IncomingPeer> read_pending();

  Socket socket_;
  std::list<PendingConnection> pending_;
};

}  // namespace tprimat::engine
