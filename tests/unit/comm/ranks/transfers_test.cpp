#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "world.h"

namespace tprimat::engine {
namespace {

float rank_sum() { return static_cast<float>(world().size() * (world().size() - 1)) / 2; }

bool all_are(const std::vector<float>& values, float expected) {
  return std::all_of(values.begin(), values.end(), [&](float value) { return value == expected; });
}

TEST(SendReceive, ARingOfLargeMessagesDoesNotLockUp) {
  const int ranks = world().size(), rank = world().rank();
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{100}, int64_t{500'000}}) {
    const std::vector<float> own(static_cast<size_t>(count), static_cast<float>(rank));
    std::vector<float> received(static_cast<size_t>(count), -1.0f);
    const auto sent = world().start_send(comm_buffer(own.data(), count), next, 3);
    world().start_receive(comm_buffer(received.data(), count), previous, 3)->wait();
    sent->wait();
    EXPECT_TRUE(all_are(received, static_cast<float>(previous))) << count;
  }
}

TEST(SendReceive, TagsKeepMessagesApartAndOrderHoldsWithinATag) {
  const int ranks = world().size(), rank = world().rank();
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  const std::vector<int32_t> own = {10 * rank, 10 * rank + 1, 10 * rank + 2};
  std::vector<TransferPtr> sends;
  sends.push_back(world().start_send(comm_buffer(own.data(), 1), next, 0));
  sends.push_back(world().start_send(comm_buffer(own.data() + 1, 1), next, 32767));
  sends.push_back(world().start_send(comm_buffer(own.data() + 2, 1), next, 0));
  std::vector<int32_t> received(3);
  world().start_receive(comm_buffer(received.data() + 1, 1), previous, 32767)->wait();
  world().start_receive(comm_buffer(received.data(), 1), previous, 0)->wait();
  world().start_receive(comm_buffer(received.data() + 2, 1), previous, 0)->wait();
  EXPECT_EQ(received, (std::vector<int32_t>{10 * previous, 10 * previous + 1, 10 * previous + 2}));
}

TEST(Transfers, SeveralAreUnderWayWhileTheCallerComputes) {
  constexpr int64_t k_count = 300'000;
  std::vector<std::vector<float>> values;
  std::vector<TransferPtr> transfers;
  for (int i = 0; i < 4; ++i) {
    values.emplace_back(k_count, static_cast<float>(world().rank() + i));
    transfers.push_back(world().start_all_reduce(comm_buffer(values.back().data(), k_count), Reduction::sum));
  }
  double computed = 0;
  for (int i = 1; i < 1000; ++i) {
    for (int j = 1; j < 200; ++j) computed += 1.0 / (i * j);
    world().progress();
  }
  EXPECT_GT(computed, 0);
  for (auto& transfer : transfers) transfer->wait();
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(all_are(values[static_cast<size_t>(i)], rank_sum() + static_cast<float>(i * world().size())));
}

// Every rank waits in an order of its own; whoever waits must move the others' transfers on.
TEST(Transfers, MayBeWaitedForInAnyOrder) {
  std::mt19937 generator(static_cast<uint32_t>(world().rank()));
  const auto group = world().split(world().rank() % 2, world().rank());
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<float>> values(6, std::vector<float>(static_cast<size_t>(1 + round * 9973), 1.0f));
    std::vector<TransferPtr> transfers;
    for (size_t i = 0; i < values.size(); ++i) {
      Communicator& on = i % 2 == 0 ? world() : *group;
      const CommBuffer buffer = comm_buffer(values[i].data(), static_cast<int64_t>(values[i].size()));
      transfers.push_back(on.start_all_reduce(buffer, Reduction::sum));
    }
    std::vector<size_t> order(values.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), generator);
    for (const size_t i : order) transfers[i]->wait();
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_TRUE(all_are(values[i], static_cast<float>(i % 2 == 0 ? world().size() : group->size())));
  }
}

TEST(Transfers, ABlockingCallMovesThoseUnderWayOn) {
  std::vector<float> values(400'000, 1.0f);
  TransferPtr transfer;
  if (world().rank() == 0) {
    transfer = world().start_all_reduce(comm_buffer(values.data(), 400'000), Reduction::sum);
    world().barrier();
    transfer->wait();
  } else {
    transfer = world().start_all_reduce(comm_buffer(values.data(), 400'000), Reduction::sum);
    transfer->wait();
    world().barrier();
  }
  EXPECT_TRUE(all_are(values, static_cast<float>(world().size())));
}

TEST(Transfers, TheDestructorWaits) {
  std::vector<float> values(200'000, 1.0f);
  { const auto transfer = world().start_all_reduce(comm_buffer(values.data(), 200'000), Reduction::sum); }
  EXPECT_TRUE(all_are(values, static_cast<float>(world().size())));
}

TEST(Transfers, MayBeWaitedForTwice) {
  std::vector<float> values(10, 1.0f);
  const auto transfer = world().start_all_reduce(comm_buffer(values.data(), 10), Reduction::sum);
  transfer->wait();
  transfer->wait();
  EXPECT_TRUE(all_are(values, static_cast<float>(world().size())));
}

}  // namespace
}  // namespace tprimat::engine
