#include "comm/tcp/tcp_communicator.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.h"

namespace tprimat::engine {
namespace {

RendezvousSettings rendezvous_of(int rank, int size, int port) {
  RendezvousSettings settings;
  settings.rank = rank;
  settings.size = size;
  settings.host = "127.0.0.1";
  settings.port = port;
  settings.seconds = 30;
  settings.one_machine = true;
  return settings;
}

// body(communicator) in a thread for each rank; what each threw.
std::vector<std::string> run_ranks(int size, const std::function<void(Communicator&)>& body) {
  Socket listener = listen_at({"127.0.0.1", 0});
  const int port = own_address(listener).port;
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const RendezvousSettings settings = rendezvous_of(rank, size, port);
        const auto ranks = make_tcp_communicator(
            rank == 0 ? rendezvous_as_first(std::move(listener), settings) : rendezvous_as_other(settings),
            [](const auto&) {});
        body(*ranks);
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

void expect_none(const std::vector<std::string>& errors) {
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Six messages, every other one long, the last two of tag 1.
std::vector<int32_t> message(int32_t number, int32_t value) {
  return std::vector<int32_t>(number % 2 == 0 ? 1'000'000 : 3, value);
}

void send_long_and_short(Communicator& ranks) {
  std::vector<std::vector<int32_t>> values(6);
  std::vector<TransferPtr> sends;
  for (int32_t i = 0; i < 6; ++i) {
    auto& each = values[static_cast<size_t>(i)];
    each = message(i, i);
    sends.push_back(ranks.start_send(comm_buffer(each.data(), static_cast<int64_t>(each.size())), 1, i / 4));
  }
  for (auto& send : sends) send->wait();
}

void receive_long_and_short(Communicator& ranks) {
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (const int32_t i : {4, 5, 0, 1, 2, 3}) {  // tag 1 first
    std::vector<int32_t> values = message(i, -1);
    ranks.start_receive(comm_buffer(values.data(), static_cast<int64_t>(values.size())), 0, i / 4)->wait();
    for (const int32_t value : values) ASSERT_EQ(value, i);
  }
}

TEST(TcpCommunicator, LongMessagesThatNobodyWaitsForYetTakeTheirTurn) {
  expect_none(run_ranks(2, [](Communicator& ranks) {
    if (ranks.rank() == 0)
      send_long_and_short(ranks);
    else
      receive_long_and_short(ranks);
  }));
}

TEST(TcpCommunicator, ARankReceivesWhatItSendsItself) {
  expect_none(run_ranks(2, [](Communicator& ranks) {
    const std::vector<float> sent(100'000, 3.0f);
    std::vector<float> received(100'000);
    const auto coming = ranks.start_receive(comm_buffer(received.data(), 100'000), ranks.rank(), 5);
    ranks.start_send(comm_buffer(sent.data(), 100'000), ranks.rank(), 5)->wait();
    coming->wait();
    EXPECT_EQ(received, sent);
  }));
}

// Groups of groups that share ranks: their messages have the same tags.
TEST(TcpCommunicator, GroupsKeepTheirMessagesApart) {
  expect_none(run_ranks(4, [](Communicator& ranks) {
    const int rank = ranks.rank();
    const auto rows = ranks.split(rank / 2, rank), columns = ranks.split(rank % 2, -rank), same = ranks.split(0, rank);
    std::vector<float> a(50'000, static_cast<float>(rank)), b = a, c = a, d = a;
    const auto first = rows->start_all_reduce(comm_buffer(a.data(), 50'000), Reduction::sum);
    const auto second = columns->start_all_reduce(comm_buffer(b.data(), 50'000), Reduction::sum);
    const auto third = same->start_all_reduce(comm_buffer(c.data(), 50'000), Reduction::sum);
    const auto fourth = ranks.start_all_reduce(comm_buffer(d.data(), 50'000), Reduction::max);
    fourth->wait();
    second->wait();
    first->wait();
    third->wait();
    EXPECT_EQ(a.back(), static_cast<float>(rank / 2 * 4 + 1));
    EXPECT_EQ(b.back(), static_cast<float>(rank % 2 * 2 + 2));
    EXPECT_EQ(c.back(), 6.0f);
    EXPECT_EQ(d.back(), 3.0f);
    EXPECT_EQ(columns->rank(), rank < 2 ? 1 : 0);
  }));
}

TEST(TcpCommunicator, ARankThatFailsInAnAllReduceEndsTheOthers) {
  const auto errors = run_ranks(3, [](Communicator& ranks) {
    std::vector<float> values(1 << 20, 1.0f), other(10);
    ranks.all_reduce(values.data(), 1 << 20);
    const auto sum = ranks.start_all_reduce(comm_buffer(values.data(), 1 << 20), Reduction::sum);
    if (ranks.rank() == 1) throw std::runtime_error("on purpose");
    sum->wait();
    ADD_FAILURE() << "rank " << ranks.rank() << " went on";
  });
  EXPECT_EQ(errors[1], "on purpose");
  for (const size_t rank : {0u, 2u}) EXPECT_TRUE(says(errors[rank], "ended before its work was done")) << errors[rank];
}

TEST(TcpCommunicator, WhatFollowsALossFailsToo) {
  const auto errors = run_ranks(2, [](Communicator& ranks) {
    if (ranks.rank() == 1) throw std::runtime_error("on purpose");
    float value = 1;
    EXPECT_THROW(ranks.barrier(), Error);
    EXPECT_THROW(ranks.all_reduce(&value, 1), Error);
    EXPECT_THROW(ranks.progress(), Error);
  });
  EXPECT_EQ(errors[0], "");
}

// In a destructor nothing may be thrown.
TEST(TcpCommunicator, ATransferThatIsNotWaitedForDoesNotHideALoss) {
  run_ranks(2, [](Communicator& ranks) {
    float value = 0;
    if (ranks.rank() == 1) throw std::runtime_error("on purpose");
    { const auto coming = ranks.start_receive(comm_buffer(&value, 1), 1, 0); }
    EXPECT_THROW(ranks.barrier(), Error);
  });
}

TEST(TcpCommunicator, ARankMayEndWhileOthersStillTalk) {
  expect_none(run_ranks(3, [](Communicator& ranks) {
    ranks.barrier();
    if (ranks.rank() == 0) return;
    std::vector<float> values(300'000, 1.0f);
    const auto pair = [&](int round) {
      const int other = 3 - ranks.rank();
      std::vector<float> received(values.size());
      const auto sent = ranks.start_send(comm_buffer(values.data(), 300'000), other, round);
      ranks.start_receive(comm_buffer(received.data(), 300'000), other, round)->wait();
      sent->wait();
    };
    for (int round = 0; round < 50; ++round) pair(round);
  }));
}

TEST(TcpCommunicator, WaitingForOneThatIsDoneIsAnError) {
  const auto errors = run_ranks(2, [](Communicator& ranks) {
    float value = 0;
    if (ranks.rank() == 1) ranks.start_receive(comm_buffer(&value, 1), 0, 0)->wait();
  });
  EXPECT_EQ(errors[0], "");
  EXPECT_TRUE(says(errors[1], "rank 0 finished while this rank still") || says(errors[1], "has already ended"))
      << errors[1];
}

TEST(TcpCommunicator, MessagesOfAnotherLengthAreAnError) {
  for (const int64_t count : {int64_t{10}, int64_t{100'000}}) {
    const auto errors = run_ranks(2, [&](Communicator& ranks) {
      std::vector<float> values(200'000);
      if (ranks.rank() == 0) ranks.start_send(comm_buffer(values.data(), count), 1, 0)->wait();
      if (ranks.rank() == 1) ranks.start_receive(comm_buffer(values.data(), count + 1), 0, 0)->wait();
      ranks.barrier();
    });
    EXPECT_TRUE(says(errors[1], "bytes, but this rank expects")) << errors[1];
  }
}

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(TcpCommunicator, WaitingTakesNoProcessor) {
  expect_none(run_ranks(2, [](Communicator& ranks) {
    ranks.barrier();
    const double before = processor_seconds();
    if (ranks.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(2));
    ranks.barrier();
    EXPECT_LT(processor_seconds() - before, 0.5);
  }));
}

TEST(FailureDetector, TellsOfALostRankWhereNobodyWaits) {
  Socket listener = listen_at({"127.0.0.1", 0});
  const int port = own_address(listener).port;
  std::array<std::string, 3> told;
  std::array<std::atomic<bool>, 3> is_told{};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      const RendezvousSettings settings = rendezvous_of(rank, 3, port);
      ConnectedRanks met =
          rank == 0 ? rendezvous_as_first(std::move(listener), settings) : rendezvous_as_other(settings);
      const auto at = static_cast<size_t>(rank);
      const auto on_loss = [&, at](const std::string& sentence) {
        told[at] = sentence;
        is_told[at] = true;
      };
      if (rank == 1) return;  // without a word
      FailureDetector detector(std::move(met.controls), on_loss, 0.1);
      for (int i = 0; i < 200 && !is_told[at]; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    });
  for (std::thread& thread : threads) thread.join();
  for (const size_t rank : {0u, 2u}) EXPECT_TRUE(says(told[rank], "rank 1 ended before")) << told[rank];
}

TEST(FailureDetector, SaysNothingOfRanksThatAreDone) {
  Socket listener = listen_at({"127.0.0.1", 0});
  const int port = own_address(listener).port;
  std::atomic<int> losses = 0;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      const RendezvousSettings settings = rendezvous_of(rank, 3, port);
      ConnectedRanks met =
          rank == 0 ? rendezvous_as_first(std::move(listener), settings) : rendezvous_as_other(settings);
      FailureDetector detector(
          std::move(met.controls), [&](const std::string&) { ++losses; }, 0.01);
      std::this_thread::sleep_for(std::chrono::milliseconds(100 * (rank + 1)));
      detector.leave(false);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(losses, 0);
}

}  // namespace
}  // namespace tprimat::engine
