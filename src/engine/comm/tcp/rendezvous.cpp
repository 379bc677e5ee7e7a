#include "comm/tcp/rendezvous.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/resource.h>

#include <algorithm>
#include <string_view>
#include <thread>

#include "base/check.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/log.h"
#include "comm/tcp/listener.h"
#include "comm/tcp/pairing.h"
#include "comm/tcp/rendezvous_exchange.h"

namespace tprimat::engine {
namespace {

using Verdict = RendezvousMessage::Verdict;
constexpr double k_slice = 0.1;      // seconds between two looks at those who wait
constexpr double k_first_note = 15;  // seconds until rank 0 says for whom it waits

RunToken draw_token() {
  RunToken token{};
  CHECK(::getrandom(token.data(), token.size(), 0) == static_cast<ssize_t>(token.size()));
  return token;
}

// Every rank has a socket to every other.
void allow_sockets(int count) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(2 * count + 512)) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

constexpr const char* k_missing_hint =
    "start every rank with the same MASTER_ADDR and MASTER_PORT, reachable from all; set "
    "TPRIMAT_RENDEZVOUS_TIMEOUT=SECONDS to wait longer";

class FirstRank {
 public:
  FirstRank(Socket listener, const RendezvousSettings& settings)
      : settings_(settings),
        listener_(std::move(listener)),
        controls_(static_cast<size_t>(settings.size)),
        table_{draw_token(), std::vector<HostAddress>(static_cast<size_t>(settings.size))} {}

  ConnectedRanks meet() {
    gather();
    welcome();
    Pairing pairing(listener_, settings_, table_.token);
    const auto check = [&] {
      for (int rank = 1; rank < settings_.size; ++rank)
        if (has_left(control(rank))) fail_for(rank);
    };
    const Deadline deadline = deadline_in(settings_.seconds);
    pairing.accept_higher_ranks(deadline, check);
    for (int rank = 1; rank < settings_.size; ++rank) {
      while (!has_message(control(rank)) && SteadyClock::now() < deadline) {
        check();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      const auto message = receive_message(control(rank), SteadyClock::now());
      if (!message || message->verdict != Verdict::ready) fail_for(rank);
    }
    for (int rank = 1; rank < settings_.size; ++rank)
      if (!send_message(control(rank), {Verdict::go})) fail_for(rank);
    return {0, settings_.size, pairing.take_peers(), std::move(controls_)};
  }

 private:
  Socket& control(int rank) { return controls_[static_cast<size_t>(rank)]; }

  [[noreturn]] void fail_for(int rank) {
    fail_rendezvous(settings_, fmt::format("rank {} joined and left again", rank), "see its own message for the cause");
  }

  std::vector<int> missing_ranks() {
    std::vector<int> ranks;
    for (int rank = 1; rank < settings_.size; ++rank)
      if (!control(rank).is_open()) ranks.push_back(rank);
    return ranks;
  }

  void gather() {
    const Deadline deadline = deadline_in(settings_.seconds), first_note = deadline_in(k_first_note);
    bool noted = false;
    for (auto missing = missing_ranks(); !missing.empty(); missing = missing_ranks()) {
      if (SteadyClock::now() >= deadline) fail_without(missing);
      if (!noted && SteadyClock::now() >= first_note) {
        noted = true;
        log_note(fmt::format("waiting for {} of {} at {}", list_ranks(missing), settings_.size,
                             rendezvous_address(settings_)));
      }
      if (auto peer = listener_.next(deadline_in(k_slice))) admit(std::move(*peer));
      for (int rank = 1; rank < settings_.size; ++rank)
        if (control(rank).is_open() && has_left(control(rank))) control(rank) = Socket();
    }
  }

  void admit(IncomingPeer peer) {
    if (peer.hello.purpose != RendezvousHello::Purpose::join) return;
    const RendezvousMessage verdict = judge(peer.hello);
    if (!send_message(peer.socket, verdict)) return;
    if (verdict.verdict != Verdict::noted) {
      log_warning(fmt::format("a process at {} tried to join the rendezvous as rank {} of {} and was refused",
                              to_text(peer_address(peer.socket)), peer.hello.rank, peer.hello.size));
      return;
    }
    HostAddress& place = table_.places[peer.hello.rank];
    place = peer_address(peer.socket);
    place.port = peer.hello.port;
    controls_[peer.hello.rank] = std::move(peer.socket);
  }

  RendezvousMessage judge(const RendezvousHello& hello) {
    if (hello.version != program_version()) return {Verdict::other_version, 0, 0, program_version()};
    if (hello.run != fnv1a(settings_.run)) return {Verdict::other_run};
    if (hello.size != static_cast<uint32_t>(settings_.size))
      return {Verdict::other_size, static_cast<uint32_t>(settings_.size)};
    if (hello.rank == 0 || controls_[hello.rank].is_open()) return {Verdict::rank_taken};
    return {Verdict::noted};
  }

  [[noreturn]] void fail_without(const std::vector<int>& missing) {
    const RendezvousMessage message{Verdict::missing, static_cast<uint32_t>(missing.size()),
                                    static_cast<uint32_t>(missing.front())};
    for (const Socket& each : controls_)
      if (each.is_open()) send_message(each, message);
    fail_rendezvous(settings_,
                    fmt::format("{} of {} ranks did not join within {:g} s: {}", missing.size(), settings_.size,
                                settings_.seconds, list_ranks(missing)),
                    k_missing_hint);
  }

  void welcome() {
    const std::vector<std::byte> table = print_table(table_);
    for (int rank = 1; rank < settings_.size; ++rank)
      if (!send_message(control(rank), {Verdict::welcome}) ||
          !send_all(control(rank), table, deadline_in(k_answer_seconds)))
        fail_for(rank);
  }

  const RendezvousSettings& settings_;
  Listener listener_;
  std::vector<Socket> controls_;
  RendezvousTable table_;
};

class OtherRank {
 public:
  explicit OtherRank(const RendezvousSettings& settings) : settings_(settings) {}

  ConnectedRanks meet() {
    join();
    const RendezvousTable table = receive_table();
    Pairing pairing(*listener_, settings_, table.token);
    for (int rank = 0; rank < settings_.rank; ++rank) pairing.connect_to_rank(rank, place_to_reach(table, rank));
    const Deadline deadline = deadline_in(settings_.seconds);
    pairing.accept_higher_ranks(deadline, [&] {
      if (has_left(control_)) fail_with_first();
    });
    pairing.confirm_lower_ranks(deadline);
    if (!send_message(control_, {Verdict::ready})) fail_with_first();
    const auto message = receive_message(control_, deadline);
    if (!message || message->verdict != Verdict::go) fail_with_first();
    std::vector<Socket> controls;
    controls.push_back(std::move(control_));
    return {settings_.rank, settings_.size, pairing.take_peers(), std::move(controls)};
  }

 private:
  [[noreturn]] void fail_with_first() {
    fail_rendezvous(settings_, "rank 0 left the rendezvous", "see its own message for the cause");
  }

  // Until rank 0 has noted this rank. Names may not be known yet, and the port may still be closed, or another's.
  void join() {
    const Deadline deadline = deadline_in(settings_.seconds);
    std::string reason = "no address";
    while (true) {
      for (const HostAddress& place : resolve_host(settings_.host, static_cast<uint16_t>(settings_.port), reason))
        if (try_to_join(place, deadline, reason)) return;
      if (SteadyClock::now() >= deadline)
        fail_rendezvous(settings_, fmt::format("rank 0 did not answer within {:g} s: {}", settings_.seconds, reason),
                        k_missing_hint);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  bool try_to_join(const HostAddress& place, Deadline deadline, std::string& reason) {
    auto socket = connect_to(place, std::min(deadline, deadline_in(k_answer_seconds)), reason);
    if (!socket) return false;
    open_listener(*socket);
    RendezvousHello hello{RendezvousHello::Purpose::join, static_cast<uint32_t>(settings_.size),
                          static_cast<uint32_t>(settings_.rank)};
    hello.port = own_address(listener_->socket()).port;
    hello.run = fnv1a(settings_.run);
    hello.version = program_version();
    const Deadline soon = std::min(deadline, deadline_in(k_answer_seconds));
    const auto message = send_all(*socket, print_hello(hello), soon) ? receive_message(*socket, soon) : std::nullopt;
    if (!message) {
      reason = "the peer there is not rank 0 of this training: another program may hold the port";
      return false;
    }
    refuse_unless_noted(*message);
    first_place_ = place;
    control_ = std::move(*socket);
    return true;
  }

  // Other machines need not reach this rank where all are on one.
  void open_listener(const Socket& to_first) {
    if (listener_) return;
    const HostAddress own = own_address(to_first);
    const bool closed = settings_.one_machine && is_loopback(own);
    listener_.emplace(listen_at(closed ? std::optional(own) : std::nullopt, 0));
  }

  void refuse_unless_noted(const RendezvousMessage& message) {
    switch (message.verdict) {
      case Verdict::noted: return;
      case Verdict::other_version:
        fail_rendezvous(settings_,
                        fmt::format("rank 0 runs tprimat {}, this rank {}", message.version, program_version()),
                        "run the same program on every machine");
      case Verdict::other_size:
        fail_rendezvous(
            settings_,
            fmt::format("rank 0 was started as one of {} ranks, this one as one of {}", message.number, settings_.size),
            "set the same WORLD_SIZE everywhere; does another training use this port?");
      case Verdict::other_run:
        fail_rendezvous(settings_, "rank 0 belongs to another run, or to another attempt of it",
                        "give each run its own MASTER_PORT");
      case Verdict::rank_taken:
        fail_rendezvous(settings_, fmt::format("another process has joined as rank {}", settings_.rank),
                        "give each rank its own RANK; does another training use this port?");
      default: fail_rendezvous(settings_, "rank 0 sent an unexpected message", "");
    }
  }

  // Rank 0 knows how long it waits; what is added lets it say so first.
  RendezvousTable receive_table() {
    const auto message = receive_message(control_, deadline_in(settings_.seconds + k_answer_seconds));
    if (message && message->verdict == Verdict::missing)
      fail_rendezvous(settings_,
                      fmt::format("{} of {} ranks did not join; the first missing one is rank {}", message->number,
                                  settings_.size, message->first),
                      k_missing_hint);
    if (!message || message->verdict != Verdict::welcome) fail_with_first();
    std::vector<std::byte> bytes(table_bytes(settings_.size));
    if (!receive_all(control_, bytes, deadline_in(k_answer_seconds))) fail_with_first();
    const auto table = parse_table(bytes, settings_.size);
    if (!table) fail_with_first();
    return *table;
  }

  // A rank that rank 0 saw at its own loopback interface is on rank 0's machine.
  HostAddress place_to_reach(const RendezvousTable& table, int rank) const {
    if (rank == 0) return first_place_;
    HostAddress place = table.places[static_cast<size_t>(rank)];
    if (is_loopback(place) && !is_loopback(first_place_)) place.bytes = first_place_.bytes;
    return place;
  }

  const RendezvousSettings& settings_;
  std::optional<Listener> listener_;
  HostAddress first_place_;
  Socket control_;
};

Socket listen_for_all(const RendezvousSettings& settings) {
  const auto port = static_cast<uint16_t>(settings.port);
  std::string reason;
  const std::vector<HostAddress> places = resolve_host(settings.host, port, reason);
  const bool closed = settings.one_machine && !places.empty() && std::all_of(places.begin(), places.end(), is_loopback);
  return listen_at(closed ? std::optional(places.front()) : std::nullopt, port);
}

}  // namespace

ConnectedRanks rendezvous_as_first(Socket listener, const RendezvousSettings& settings) {
  allow_sockets(settings.size);
  return FirstRank(std::move(listener), settings).meet();
}

ConnectedRanks rendezvous_as_other(const RendezvousSettings& settings) {
  allow_sockets(settings.size);
  return OtherRank(settings).meet();
}

ConnectedRanks connect_ranks(const RendezvousSettings& settings) {
  if (settings.size > k_max_tcp_ranks)
    fail_rendezvous(settings, fmt::format("{} ranks exceed the limit of {} over TCP", settings.size, k_max_tcp_ranks),
                    "use MPI");
  return settings.rank == 0 ? rendezvous_as_first(listen_for_all(settings), settings) : rendezvous_as_other(settings);
}

}  // namespace tprimat::engine
