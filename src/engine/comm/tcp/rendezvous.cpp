#include "comm/tcp/rendezvous.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>
#include <sys/resource.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "base/build_info.h"
#include "base/check.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/log.h"
#include "comm/tcp/rendezvous_messages.h"

namespace tprimat::engine {
namespace {

using Purpose = RendezvousHello::Purpose;
using Verdict = RendezvousMessage::Verdict;
constexpr double k_slice = 0.1;           // seconds between two looks at those who wait
constexpr double k_first_note = 15;       // seconds until rank 0 says for whom it waits
constexpr double k_answer_seconds = 20;   // for messages that are due at once
constexpr double k_connect_seconds = 60;  // between two ranks whose places are known
constexpr size_t k_max_named = 16;        // ranks in a sentence

constexpr const char* k_missing_hint =
    "start every rank with the same MASTER_ADDR and MASTER_PORT, reachable from all; set "
    "TPRIMAT_RENDEZVOUS_TIMEOUT=SECONDS to wait longer";
constexpr const char* k_port_hint =
    "ranks exchange data on ports chosen by the system: open the ephemeral ports between the machines";
constexpr const char* k_own_message_hint = "see its own message for the cause";

FixedText fixed_text(std::string_view text) {
  FixedText fixed{};
  std::ranges::copy(text.substr(0, fixed.size() - 1), fixed.begin());
  return fixed;
}

FixedText program_version() {
  const BuildInfo info = build_info();
  return fixed_text(info.revision.empty() ? std::string(info.version)
                                          : fmt::format("{}+{}", info.version, info.revision.substr(0, 12)));
}

std::string list_ranks(const std::vector<int>& ranks) {
  const std::span named = std::span(ranks).first(std::min(ranks.size(), k_max_named));
  return fmt::format("rank{} {}{}", ranks.size() == 1 ? "" : "s", fmt::join(named, ", "),
                     ranks.size() > k_max_named ? ", ..." : "");
}

// Every rank has a socket to every other.
void allow_sockets(int count) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(2 * count + 512)) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

bool send_message(const Socket& socket, RendezvousMessage message) {
  return send_all(socket, message_bytes(message), deadline_in(k_answer_seconds));
}

// The verdict is none of ours where nothing valid comes.
RendezvousMessage receive_message(const Socket& socket, Deadline deadline) {
  RendezvousMessage message;
  if (receive_all(socket, message_bytes(message), deadline) && is_valid(message)) return message;
  return {.verdict = {}};
}

// What both sides do: the connections between each two ranks.
class Rendezvous {
 protected:
  Rendezvous(const RendezvousSettings& settings, Socket listener)
      : settings_(settings), listener_(std::move(listener)), peers_(static_cast<size_t>(settings.size)) {
    if (settings.size > k_max_tcp_ranks)
      fail(fmt::format("{} ranks exceed the limit of {} over TCP", settings.size, k_max_tcp_ranks), "use MPI");
    allow_sockets(settings.size);
  }

  [[noreturn]] void fail(const std::string& what, const std::string& hint) const {
    throw Error(Problem{what, fmt::format("rank {} at the rendezvous, {}", settings_.rank, address()), hint},
                ExitStatus::work_failed);
  }
  std::string address() const { return fmt::format("{}:{}", settings_.host, settings_.port); }

  RendezvousHello make_hello(Purpose purpose, int to) const {
    RendezvousHello hello;
    hello.purpose = purpose;
    hello.size = static_cast<uint32_t>(settings_.size);
    hello.rank = static_cast<uint32_t>(settings_.rank);
    hello.to = static_cast<uint32_t>(to);
    hello.run = fnv1a(settings_.run);
    hello.token = token_;
    hello.version = program_version();
    return hello;
  }

  // Those of all higher ranks. check() throws if waiting is pointless.
  void accept_higher_ranks(Deadline deadline, const std::function<void()>& check) {
    for (auto absent = absent_ranks(peers_); !absent.empty(); absent = absent_ranks(peers_)) {
      if (auto peer = listener_.next(deadline_in(k_slice)); peer && is_due(peer->hello))
        keep(static_cast<int>(peer->hello.rank), std::move(peer->socket));
      check();
      if (SteadyClock::now() >= deadline) fail(list_ranks(absent) + " did not connect to this rank", k_port_hint);
    }
  }

  // The higher ranks to which there is no socket.
  std::vector<int> absent_ranks(const std::vector<Socket>& sockets) const {
    std::vector<int> ranks;
    for (int rank = settings_.rank + 1; rank < settings_.size; ++rank)
      if (!sockets[static_cast<size_t>(rank)].is_open()) ranks.push_back(rank);
    return ranks;
  }

  void keep(int rank, Socket socket) { peers_[static_cast<size_t>(rank)] = std::move(socket); }

  bool is_due(const RendezvousHello& hello) const {
    return hello.purpose == Purpose::pair && hello.token == token_ &&
           hello.size == static_cast<uint32_t>(settings_.size) && hello.to == static_cast<uint32_t>(settings_.rank) &&
           hello.rank > hello.to && !peers_[hello.rank].is_open();
  }

  const RendezvousSettings& settings_;
  Listener listener_;
  RunToken token_{};
  std::vector<Socket> peers_;
};

class FirstRank : Rendezvous {
 public:
  FirstRank(Socket listener, const RendezvousSettings& settings)
      : Rendezvous(settings, std::move(listener)),
        controls_(static_cast<size_t>(settings.size)),
        table_(static_cast<size_t>(settings.size)) {
    CHECK(::getrandom(token_.data(), token_.size(), 0) == static_cast<ssize_t>(token_.size()));
  }

  ConnectedRanks meet() {
    gather();
    for_each_other([&](int rank) {
      if (!send_message(control(rank), {.verdict = Verdict::welcome}) ||
          !send_all(control(rank), message_bytes(token_), deadline_in(k_answer_seconds)) ||
          !send_all(control(rank), std::as_bytes(std::span(table_)), deadline_in(k_answer_seconds)))
        fail_for(rank);
    });
    const Deadline deadline = deadline_in(settings_.seconds);
    accept_higher_ranks(deadline, [&] { check_all(); });
    for_each_other([&](int rank) { await_ready(rank, deadline); });
    for_each_other([&](int rank) {
      if (!send_message(control(rank), {.verdict = Verdict::go})) fail_for(rank);
    });
    return {0, settings_.size, std::move(peers_), std::move(controls_)};
  }

 private:
  Socket& control(int rank) { return controls_[static_cast<size_t>(rank)]; }

  template <class Visit>
  void for_each_other(Visit&& visit) const {
    for (int rank = 1; rank < settings_.size; ++rank) visit(rank);
  }

  [[noreturn]] void fail_for(int rank) { fail(fmt::format("rank {} joined and left again", rank), k_own_message_hint); }

  void check_all() {
    for_each_other([&](int rank) {
      if (has_left(control(rank))) fail_for(rank);
    });
  }

  void await_ready(int rank, Deadline deadline) {
    while (!has_bytes(control(rank), sizeof(RendezvousMessage)) && SteadyClock::now() < deadline) {
      check_all();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (receive_message(control(rank), SteadyClock::now()).verdict != Verdict::ready) fail_for(rank);
  }

  void gather() {
    const Deadline deadline = deadline_in(settings_.seconds), first_note = deadline_in(k_first_note);
    bool noted = false;
    for (auto missing = absent_ranks(controls_); !missing.empty(); missing = absent_ranks(controls_)) {
      if (SteadyClock::now() >= deadline) fail_without(missing);
      if (!noted && SteadyClock::now() >= first_note) {
        noted = true;
        log_note(fmt::format("waiting for {} of {} at {}", list_ranks(missing), settings_.size, address()));
      }
      if (auto peer = listener_.next(deadline_in(k_slice))) admit(std::move(*peer));
      for (Socket& socket : controls_)
        if (socket.is_open() && has_left(socket)) socket = Socket();
    }
  }

  void admit(IncomingPeer peer) {
    if (peer.hello.purpose != Purpose::join) return;
    const RendezvousMessage verdict = judge(peer.hello);
    if (!send_message(peer.socket, verdict)) return;
    const HostAddress from = peer_address(peer.socket);
    if (verdict.verdict != Verdict::noted)
      return log_warning(fmt::format("a process at {} tried to join the rendezvous as rank {} of {} and was refused",
                                     to_text(from), peer.hello.rank, peer.hello.size));
    table_[peer.hello.rank] = {fixed_text(from.host), peer.hello.port};
    controls_[peer.hello.rank] = std::move(peer.socket);
  }

  RendezvousMessage judge(const RendezvousHello& hello) {
    if (hello.version != program_version()) return {.verdict = Verdict::other_version, .version = program_version()};
    if (hello.run != fnv1a(settings_.run)) return {.verdict = Verdict::other_run};
    if (hello.size != static_cast<uint32_t>(settings_.size))
      return {.verdict = Verdict::other_size, .number = static_cast<uint32_t>(settings_.size)};
    if (hello.rank == 0 || controls_[hello.rank].is_open()) return {.verdict = Verdict::rank_taken};
    return {};
  }

  [[noreturn]] void fail_without(const std::vector<int>& missing) {
    for (const Socket& each : controls_)
      if (each.is_open())
        send_message(each, {.verdict = Verdict::missing,
                            .number = static_cast<uint32_t>(missing.size()),
                            .first = static_cast<uint32_t>(missing.front())});
    fail(fmt::format("{} of {} ranks did not join within {:g} s: {}", missing.size(), settings_.size, settings_.seconds,
                     list_ranks(missing)),
         k_missing_hint);
  }

  std::vector<Socket> controls_;
  std::vector<RendezvousPlace> table_;  // rank 0's own place is empty
};

class OtherRank : Rendezvous {
 public:
  explicit OtherRank(const RendezvousSettings& settings) : Rendezvous(settings, Socket()) {}

  ConnectedRanks meet() {
    join();
    const std::vector<RendezvousPlace> table = receive_table();
    for (int rank = 0; rank < settings_.rank; ++rank)
      connect_to_rank(rank, rank == 0 ? first_place_ : place_to_reach(table[static_cast<size_t>(rank)]));
    const Deadline deadline = deadline_in(settings_.seconds);
    accept_higher_ranks(deadline, [&] {
      if (has_left(control_)) fail_with_first();
    });
    if (!send_message(control_, {.verdict = Verdict::ready})) fail_with_first();
    if (receive_message(control_, deadline).verdict != Verdict::go) fail_with_first();
    std::vector<Socket> controls;
    controls.push_back(std::move(control_));
    return {settings_.rank, settings_.size, std::move(peers_), std::move(controls)};
  }

 private:
  [[noreturn]] void fail_with_first() const { fail("rank 0 left the rendezvous", k_own_message_hint); }

  void connect_to_rank(int rank, const HostAddress& place) {
    const Deadline deadline = deadline_in(std::min(settings_.seconds, k_connect_seconds));
    RendezvousHello hello = make_hello(Purpose::pair, rank);
    std::string reason;
    while (true) {
      auto socket = connect_to(place, deadline, reason);
      if (socket && send_all(*socket, message_bytes(hello), deadline)) return keep(rank, std::move(*socket));
      if (SteadyClock::now() >= deadline)
        fail(fmt::format("cannot connect to rank {} at {}: {}", rank, to_text(place), reason), k_port_hint);
      if (has_left(control_)) fail_with_first();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }

  // Until rank 0 has noted this rank. Names may not be known yet, and the port may still be closed, or another's.
  void join() {
    const Deadline deadline = deadline_in(settings_.seconds);
    std::string reason = "no address";
    while (true) {
      for (const HostAddress& place : resolve_host(settings_.host, static_cast<uint16_t>(settings_.port), reason))
        if (try_to_join(place, deadline, reason)) return;
      if (SteadyClock::now() >= deadline)
        fail(fmt::format("rank 0 did not answer within {:g} s: {}", settings_.seconds, reason), k_missing_hint);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  bool try_to_join(const HostAddress& place, Deadline deadline, std::string& reason) {
    const Deadline soon = std::min(deadline, deadline_in(k_answer_seconds));
    auto socket = connect_to(place, soon, reason);
    if (!socket) return false;
    if (!listener_.socket().is_open()) {  // other machines need not reach this rank where all are on one
      const HostAddress own{own_address(*socket).host, 0};
      listener_ = Listener(listen_at(settings_.one_machine && is_loopback(own) ? own : HostAddress()));
    }
    RendezvousHello hello = make_hello(Purpose::join, 0);
    hello.port = own_address(listener_.socket()).port;
    const RendezvousMessage message = send_all(*socket, message_bytes(hello), soon) ? receive_message(*socket, soon)
                                                                                    : RendezvousMessage{.verdict = {}};
    if (message.verdict == Verdict{}) {
      reason = "the peer there is not rank 0 of this training: another program may hold the port";
      return false;
    }
    refuse_unless_noted(message);
    first_place_ = place;
    control_ = std::move(*socket);
    return true;
  }

  void refuse_unless_noted(const RendezvousMessage& message) const {
    switch (message.verdict) {
      case Verdict::noted: return;
      case Verdict::other_version:
        fail(fmt::format("rank 0 runs tprimat {}, this rank {}", message.version.data(), program_version().data()),
             "run the same program on every machine");
      case Verdict::other_size:
        fail(
            fmt::format("rank 0 was started as one of {} ranks, this one as one of {}", message.number, settings_.size),
            "set the same WORLD_SIZE everywhere; does another training use this port?");
      case Verdict::other_run:
        fail("rank 0 belongs to another run, or to another attempt of it", "give each run its own MASTER_PORT");
      case Verdict::rank_taken:
        fail(fmt::format("another process has joined as rank {}", settings_.rank),
             "give each rank its own RANK; does another training use this port?");
      default: fail("rank 0 sent an unexpected message", "");
    }
  }

  // Rank 0 knows how long it waits; what is added lets it say so first.
  std::vector<RendezvousPlace> receive_table() {
    const RendezvousMessage message = receive_message(control_, deadline_in(settings_.seconds + k_answer_seconds));
    if (message.verdict == Verdict::missing)
      fail(fmt::format("{} of {} ranks did not join; the first missing one is rank {}", message.number, settings_.size,
                       message.first),
           k_missing_hint);
    std::vector<RendezvousPlace> table(static_cast<size_t>(settings_.size));
    const Deadline soon = deadline_in(k_answer_seconds);
    if (message.verdict != Verdict::welcome || !receive_all(control_, message_bytes(token_), soon) ||
        !receive_all(control_, std::as_writable_bytes(std::span(table)), soon) ||
        !std::all_of(table.begin() + 1, table.end(), [](const RendezvousPlace& place) { return is_valid(place); }))
      fail_with_first();
    return table;
  }

  // A rank that rank 0 saw at its own loopback interface is on rank 0's machine.
  HostAddress place_to_reach(const RendezvousPlace& place) const {
    HostAddress address{place.host.data(), static_cast<uint16_t>(place.port)};
    if (is_loopback(address) && !is_loopback(first_place_)) address.host = first_place_.host;
    return address;
  }

  HostAddress first_place_;
  Socket control_;
};

// Where all ranks are on one machine, others need not reach it.
Socket listen_for_all(const RendezvousSettings& settings) {
  const auto port = static_cast<uint16_t>(settings.port);
  std::string reason;
  const std::vector<HostAddress> places = resolve_host(settings.host, port, reason);
  const bool closed = settings.one_machine && !places.empty() && std::ranges::all_of(places, is_loopback);
  return listen_at(closed ? places.front() : HostAddress{"", port});
}

}  // namespace

ConnectedRanks rendezvous_as_first(Socket listener, const RendezvousSettings& settings) {
  return FirstRank(std::move(listener), settings).meet();
}

ConnectedRanks rendezvous_as_other(const RendezvousSettings& settings) { return OtherRank(settings).meet(); }

ConnectedRanks connect_ranks(const RendezvousSettings& settings) {
  return settings.rank == 0 ? rendezvous_as_first(listen_for_all(settings), settings) : rendezvous_as_other(settings);
}

}  // namespace tprimat::engine
