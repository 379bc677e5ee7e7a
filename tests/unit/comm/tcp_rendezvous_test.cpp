#include "comm/tcp/rendezvous.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/tcp/rendezvous_messages.h"

namespace tprimat::engine {
namespace {

RendezvousSettings settings_of(int rank, int size, int port, double seconds = 30) {
  RendezvousSettings settings;
  settings.rank = rank;
  settings.size = size;
  settings.host = "127.0.0.1";
  settings.port = port;
  settings.seconds = seconds;
  settings.one_machine = true;
  return settings;
}

Socket listen_here() { return listen_at({"127.0.0.1", 0}); }

// What each side of a rendezvous came to: its ranks, or the sentence of its error.
struct Outcome {
  ConnectedRanks met;
  std::string error;
};

template <class Meet>
Outcome outcome_of(const Meet& meet) {
  try {
    return {meet(), ""};
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::work_failed);
    return {{}, error.what()};
  }
}

// Rank 0 listens while `others(port)` does what it does.
template <class Others>
Outcome outcome_of_first(RendezvousSettings settings, const Others& others) {
  Socket listener = listen_here();
  settings.port = own_address(listener).port;
  Outcome first;
  std::thread thread([&] { first = outcome_of([&] { return rendezvous_as_first(std::move(listener), settings); }); });
  others(settings.port);
  thread.join();
  return first;
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::optional<Socket> connect_here(int port) {
  std::string reason;
  return connect_to({"127.0.0.1", static_cast<uint16_t>(port)}, deadline_in(10), reason);
}

void say_bytes(const Socket& socket, const std::string& text) {
  send_all(socket, std::as_bytes(std::span(text)), deadline_in(10));
}

TEST(Rendezvous, BringsAllRanksTogether) {
  constexpr int k_ranks = 5;
  std::vector<Outcome> others(k_ranks);
  const Outcome first = outcome_of_first(settings_of(0, k_ranks, 0), [&](int port) {
    std::vector<std::thread> threads;
    for (int rank = k_ranks - 1; rank > 0; --rank)
      threads.emplace_back([&, rank] {
        others[static_cast<size_t>(rank)] =
            outcome_of([&] { return rendezvous_as_other(settings_of(rank, k_ranks, port)); });
      });
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(first.error, "");
  EXPECT_EQ(first.met.controls.size(), size_t{k_ranks});
  for (int rank = 0; rank < k_ranks; ++rank) {
    const Outcome& outcome = rank == 0 ? first : others[static_cast<size_t>(rank)];
    EXPECT_EQ(outcome.error, "");
    ASSERT_EQ(outcome.met.peers.size(), size_t{k_ranks});
    for (int peer = 0; peer < k_ranks; ++peer)
      EXPECT_EQ(outcome.met.peers[static_cast<size_t>(peer)].is_open(), peer != rank);
  }
}

TEST(Rendezvous, NamesTheRanksThatDidNotCome) {
  Outcome second;
  const Outcome first = outcome_of_first(settings_of(0, 4, 0, 1), [&](int port) {
    second = outcome_of([&] { return rendezvous_as_other(settings_of(2, 4, port, 1)); });
  });
  EXPECT_TRUE(holds(first.error, "2 of 4 ranks did not join within 1 s: ranks 1, 3")) << first.error;
  EXPECT_TRUE(holds(first.error, "127.0.0.1:")) << first.error;
  EXPECT_TRUE(holds(first.error, "TPRIMAT_RENDEZVOUS_TIMEOUT")) << first.error;
  EXPECT_TRUE(holds(second.error, "2 of 4 ranks did not join; the first missing one is rank 1")) << second.error;
}

TEST(Rendezvous, WhereRankZeroIsNotEndsInTime) {
  int port = 0;
  {
    const Socket listener = listen_here();
    port = own_address(listener).port;
  }
  const Outcome alone = outcome_of([&] { return rendezvous_as_other(settings_of(1, 2, port, 1)); });
  EXPECT_TRUE(holds(alone.error, "rank 0 did not answer within 1 s: Connection refused")) << alone.error;
}

TEST(Rendezvous, ANameWithoutAnAddressIsNamed) {
  RendezvousSettings settings = settings_of(1, 2, 1, 1);
  settings.host = "no such host";
  const Outcome alone = outcome_of([&] { return rendezvous_as_other(settings); });
  EXPECT_TRUE(holds(alone.error, "no such host:1")) << alone.error;
}

TEST(Rendezvous, AnotherProgramAtThePortIsNotRankZero) {
  const Socket listener = listen_here();
  std::atomic<bool> done = false;
  std::thread server([&] {
    while (!done)
      if (const auto peer = accept_connection(listener)) say_bytes(*peer, std::string(200, 'x'));
  });
  const Outcome alone =
      outcome_of([&] { return rendezvous_as_other(settings_of(1, 2, own_address(listener).port, 1)); });
  done = true;
  server.join();
  EXPECT_TRUE(holds(alone.error, "is not rank 0 of this training")) << alone.error;
}

TEST(Rendezvous, StrangersAreIgnored) {
  Outcome second;
  std::vector<Socket> strangers;
  const Outcome first = outcome_of_first(settings_of(0, 2, 0), [&](int port) {
    for (int i = 0; i < 300; ++i) {  // most say nothing
      strangers.push_back(connect_here(port).value());
      if (i % 3 == 0) say_bytes(strangers.back(), "GET / HTTP/1.1\r\n\r\n");
      if (i % 7 == 0) say_bytes(strangers.back(), std::string(1000, '\xff'));
      if (i % 11 == 0) strangers.pop_back();
    }
    second = outcome_of([&] { return rendezvous_as_other(settings_of(1, 2, port)); });
  });
  EXPECT_EQ(first.error, "");
  EXPECT_EQ(second.error, "");
}

TEST(Rendezvous, RefusesWhoDoesNotBelongToIt) {
  std::vector<std::string> refused;
  Outcome second;
  RendezvousSettings first_settings = settings_of(0, 3, 0, 30);
  first_settings.run = "this/0";
  const Outcome first = outcome_of_first(first_settings, [&](int port) {
    RendezvousSettings other = settings_of(1, 3, port);
    other.run = "this/0";
    std::thread good([&, other] { second = outcome_of([&] { return rendezvous_as_other(other); }); });
    const auto refuse = [&](RendezvousSettings settings) {
      refused.push_back(outcome_of([&] { return rendezvous_as_other(settings); }).error);
    };
    RendezvousSettings stale = other;
    stale.rank = 2;
    stale.run = "this/1";
    refuse(stale);
    RendezvousSettings larger = settings_of(3, 4, port);
    larger.run = "this/0";
    refuse(larger);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    refuse(other);  // once rank 1 is there
    RendezvousSettings last = other;
    last.rank = 2;
    EXPECT_EQ(outcome_of([&] { return rendezvous_as_other(last); }).error, "");
    good.join();
  });
  EXPECT_EQ(first.error, "");
  EXPECT_EQ(second.error, "");
  ASSERT_EQ(refused.size(), 3u);
  EXPECT_TRUE(holds(refused[0], "another run")) << refused[0];
  EXPECT_TRUE(holds(refused[1], "rank 0 was started as one of 3 ranks, this one as one of 4")) << refused[1];
  EXPECT_TRUE(holds(refused[2], "another process has joined as rank 1")) << refused[2];
}

// A process that says a hello of its own making; what rank 0 answers.
std::optional<RendezvousMessage> answer_to(const Socket& socket, RendezvousHello hello) {
  RendezvousMessage message;
  if (!send_all(socket, message_bytes(hello), deadline_in(10))) return std::nullopt;
  if (!receive_all(socket, message_bytes(message), deadline_in(2)) || !is_valid(message)) return std::nullopt;
  return message;
}

RendezvousHello hello_of(uint32_t rank, uint32_t size) {
  RendezvousHello hello;
  hello.rank = rank;
  hello.size = size;
  hello.port = 1;
  hello.run = 14695981039346656037u;  // of a run without a name
  return hello;
}

// The version that rank 0 names when it refuses another.
FixedText version_at(int port) {
  RendezvousHello hello = hello_of(1, 2);
  hello.version = {'0', '.', '0'};
  const auto message = answer_to(*connect_here(port), hello);
  EXPECT_TRUE(message && message->verdict == RendezvousMessage::Verdict::other_version && message->version[0] != 0);
  return message ? message->version : FixedText();
}

TEST(Rendezvous, AnotherVersionAndAWrongTokenAreRefused) {
  Outcome second;
  const Outcome first = outcome_of_first(settings_of(0, 2, 0), [&](int port) {
    RendezvousHello hello = hello_of(1, 2);
    hello.version = version_at(port);
    hello.purpose = RendezvousHello::Purpose::pair;
    EXPECT_FALSE(answer_to(*connect_here(port), hello).has_value());
    second = outcome_of([&] { return rendezvous_as_other(settings_of(1, 2, port)); });
  });
  EXPECT_EQ(first.error, "");
  EXPECT_EQ(second.error, "");
}

TEST(RendezvousHello, WhatNoRankSaysIsNone) {
  EXPECT_TRUE(is_valid(hello_of(1, 2)));
  const auto spoilt = [](auto&& spoil) {
    RendezvousHello hello = hello_of(1, 2);
    spoil(hello);
    return is_valid(hello);
  };
  EXPECT_FALSE(spoilt([](RendezvousHello& hello) { hello.rank = 2; }));
  EXPECT_FALSE(spoilt([](RendezvousHello& hello) { hello.to = 2; }));
  EXPECT_FALSE(spoilt([](RendezvousHello& hello) { hello.size = 0; }));
  EXPECT_FALSE(spoilt([](RendezvousHello& hello) { hello.size = 1u << 31; }));
  EXPECT_FALSE(spoilt([](RendezvousHello& hello) { hello.port = 1 << 16; }));
  EXPECT_FALSE(spoilt([](RendezvousHello& hello) { hello.purpose = RendezvousHello::Purpose{3}; }));
  EXPECT_FALSE(spoilt([](RendezvousHello& hello) { hello.version = {'\x1b', '[', '3', '1', 'm'}; }));
  EXPECT_FALSE(spoilt([](RendezvousHello& hello) { hello.version.fill('1'); }));  // no end
  for (unsigned bit = 0; bit < 64; ++bit)
    EXPECT_FALSE(spoilt([&](RendezvousHello& hello) { hello.protocol ^= uint64_t{1} << bit; })) << bit;
}

void come_and_leave(int port, bool connects) {
  Socket listener = listen_here();
  RendezvousHello hello = hello_of(2, 3);
  hello.port = own_address(listener).port;
  hello.version = version_at(port);
  const auto socket = connect_here(port);
  const auto noted = answer_to(*socket, hello);
  ASSERT_TRUE(noted && noted->verdict == RendezvousMessage::Verdict::noted);
  RendezvousMessage welcome;
  std::array<RendezvousPlace, 3> table;
  EXPECT_TRUE(receive_all(*socket, message_bytes(welcome), deadline_in(10)));
  EXPECT_EQ(welcome.verdict, RendezvousMessage::Verdict::welcome);
  EXPECT_TRUE(receive_all(*socket, message_bytes(hello.token), deadline_in(10)));
  EXPECT_TRUE(receive_all(*socket, message_bytes(table), deadline_in(10)));
  EXPECT_TRUE(is_valid(table[1]) && is_valid(table[2]));
  if (!connects) return;
  hello.purpose = RendezvousHello::Purpose::pair;
  EXPECT_TRUE(send_all(*connect_here(port), message_bytes(hello), deadline_in(10)));
}

// Rank 2 comes, learns the table and goes, before or after it connected to rank 0: neither of the others waits for it
// till the end.
class RendezvousOfThree : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(, RendezvousOfThree, testing::Bool());

TEST_P(RendezvousOfThree, ARankThatLeavesEndsItForAll) {
  Outcome second;
  const Outcome first = outcome_of_first(settings_of(0, 3, 0), [&](int port) {
    std::thread good([&] { second = outcome_of([&] { return rendezvous_as_other(settings_of(1, 3, port)); }); });
    Outcome third = outcome_of([&] {
      come_and_leave(port, GetParam());
      return ConnectedRanks();
    });
    EXPECT_EQ(third.error, "");
    good.join();
  });
  EXPECT_TRUE(holds(first.error, "rank 2 joined and left again")) << first.error;
  EXPECT_TRUE(holds(second.error, "rank 0 left the rendezvous")) << second.error;
}

TEST(RendezvousSettings, AreThoseOfTheEnvironment) {
  std::map<std::string, std::string> variables = {{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
  const auto read = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  const LauncherPlace place{5, 8, 1, 4, RendezvousKind::tcp};
  RendezvousSettings settings = read_rendezvous_settings(read, place);
  EXPECT_EQ(settings.rank, 5);
  EXPECT_EQ(settings.size, 8);
  EXPECT_EQ(settings.host, "node1");
  EXPECT_EQ(settings.port, 29500);
  EXPECT_EQ(settings.seconds, 300);
  EXPECT_EQ(settings.run, "");
  EXPECT_FALSE(settings.one_machine);
  EXPECT_TRUE(read_rendezvous_settings(read, {1, 2, 1, 2, RendezvousKind::tcp}).one_machine);

  variables["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  EXPECT_EQ(read_rendezvous_settings(read, place).port, 29500);
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";  // torchrun itself listens there
  variables["TORCHELASTIC_RUN_ID"] = "none";
  variables["TORCHELASTIC_RESTART_COUNT"] = "2";
  variables["TPRIMAT_RENDEZVOUS_TIMEOUT"] = "20";
  settings = read_rendezvous_settings(read, place);
  EXPECT_EQ(settings.port, 29501);
  EXPECT_EQ(settings.run, "none/2");
  EXPECT_EQ(settings.seconds, 20);
  variables["TPRIMAT_RENDEZVOUS_PORT"] = "4000";
  EXPECT_EQ(read_rendezvous_settings(read, place).port, 4000);
  variables.erase("TPRIMAT_RENDEZVOUS_PORT");
  for (const char* port : {"", "0", "65535", "65536", "-1", "x", "29500x"}) {
    variables["MASTER_PORT"] = port;
    try {
      read_rendezvous_settings(read, place);
      ADD_FAILURE() << port << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::usage);
      EXPECT_TRUE(holds(error.what(), "MASTER_PORT: must be a whole number")) << error.what();
    }
  }
}

TEST(HostAddress, IsPrintedAsPeopleWriteIt) {
  EXPECT_EQ(to_text({"10.0.0.3", 29500}), "10.0.0.3:29500");
  EXPECT_EQ(to_text({"::1", 5}), "[::1]:5");
  EXPECT_TRUE(is_loopback({"::1", 5}));
  EXPECT_TRUE(is_loopback({"127.0.1.1", 0}));
  EXPECT_FALSE(is_loopback({"10.0.0.3", 0}));
}

// A socket for IPv4 and IPv6 sees IPv4 addresses in a form of its own.
TEST(HostAddress, OfAPeerIsTheOneItConnectedFrom) {
  const Socket listener = listen_at({});
  const auto socket = connect_here(own_address(listener).port);
  std::optional<Socket> peer;
  for (int i = 0; i < 100 && !peer; ++i) {
    peer = accept_connection(listener);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(peer);
  EXPECT_EQ(to_text(peer_address(*peer)), to_text(own_address(*socket)));
  EXPECT_TRUE(is_loopback(peer_address(*peer)));
}

TEST(ListenAt, APortThatIsTakenIsNamed) {
  const Socket listener = listen_here();
  const int port = own_address(listener).port;
  for (const bool everywhere : {false, true}) try {
      listen_at({everywhere ? "" : "127.0.0.1", static_cast<uint16_t>(port)});
      ADD_FAILURE() << "was taken twice";
    } catch (const Error& error) {
      EXPECT_TRUE(holds(error.what(), "cannot listen on port " + std::to_string(port))) << error.what();
      EXPECT_TRUE(holds(error.what(), "MASTER_PORT")) << error.what();
    }
}

}  // namespace
}  // namespace tprimat::engine
