#include "comm/gpu/nccl_communicator.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "device/gpu/context.h"
#include "emulator/host_nccl.h"
#include "unit/gpu/device_vector.h"
#include "world.h"

// On the shim, whose sums are made in the order of the ranks.
namespace tprimat::engine::gpu {
namespace {

Communicator& group() {
  test_device();
  static const std::unique_ptr<Communicator> instance = make_gpu_communicator(world().split(0, world().rank()));
  return *instance;
}

const std::vector<int64_t> k_lengths = {0, 1, 7, 4099, 400'001};  // the last are several slots of shared memory

template <class T>
T value_of(int rank, int64_t i) {
  const double unit = static_cast<double>((i * 7919 + rank * 104'729) % 2003) / 100.0 - 10.0;
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(unit * 1000);
  else
    return narrow<T>(static_cast<Accum<T>>(unit));
}

template <class T>
std::vector<T> values_of(int rank, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = value_of<T>(rank, i);
  return values;
}

template <class T>
T reduced(int64_t i, Reduction reduction) {
  const auto combine = [&](auto a, auto b) { return reduction == Reduction::sum ? a + b : std::max(a, b); };
  if constexpr (std::is_integral_v<T>) {
    T total = value_of<T>(0, i);
    for (int rank = 1; rank < group().size(); ++rank) total = combine(total, value_of<T>(rank, i));
    return total;
  } else {
    Accum<T> total = widen(value_of<T>(0, i));
    for (int rank = 1; rank < group().size(); ++rank) total = combine(total, widen(value_of<T>(rank, i)));
    return narrow<T>(total);
  }
}

template <class T>
std::vector<T> all_reduced(int64_t count, Reduction reduction = Reduction::sum) {
  std::vector<T> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = reduced<T>(i, reduction);
  return values;
}

template <class T>
class GpuCollectives : public testing::Test {};
using ExchangedTypes = testing::Types<float, double, bf16, f16, int32_t, int64_t>;
TYPED_TEST_SUITE(GpuCollectives, ExchangedTypes);

TYPED_TEST(GpuCollectives, AllReduce) {
  for (const int64_t count : k_lengths)
    for (const Reduction reduction : {Reduction::sum, Reduction::max}) {
      const DeviceVector<TypeParam> values(values_of<TypeParam>(group().rank(), count));
      group().all_reduce(values.data(), count, reduction);
      EXPECT_EQ(values.download(), all_reduced<TypeParam>(count, reduction)) << count;
    }
}

TYPED_TEST(GpuCollectives, ReduceScatterInPlaceAndElsewhere) {
  const int ranks = group().size(), rank = group().rank();
  for (const int64_t count : k_lengths) {
    const auto sums = all_reduced<TypeParam>(count * ranks);
    const std::vector<TypeParam> block(sums.begin() + rank * count, sums.begin() + (rank + 1) * count);
    DeviceVector<TypeParam> all(values_of<TypeParam>(rank, count * ranks));
    const auto own = DeviceVector<TypeParam>::poisoned(count);
    group().reduce_scatter(all.data(), count, own.data());
    EXPECT_EQ(own.download(), block) << count;
    all.upload(values_of<TypeParam>(rank, count * ranks));
    group().reduce_scatter(all.data(), count, all.data() + rank * count);
    const auto found = all.download();
    EXPECT_TRUE(std::equal(block.begin(), block.end(), found.begin() + rank * count)) << count;
  }
}

TYPED_TEST(GpuCollectives, AllGatherInPlaceAndElsewhere) {
  const int ranks = group().size(), rank = group().rank();
  for (const int64_t count : k_lengths) {
    std::vector<TypeParam> expected;
    for (int each = 0; each < ranks; ++each) {
      const auto block = values_of<TypeParam>(each, count);
      expected.insert(expected.end(), block.begin(), block.end());
    }
    const auto own = values_of<TypeParam>(rank, count);
    const DeviceVector<TypeParam> own_there(own);
    DeviceVector<TypeParam> all = DeviceVector<TypeParam>::poisoned(count * ranks);
    group().all_gather(own_there.data(), count, all.data());
    EXPECT_EQ(all.download(), expected) << count;
    std::vector<TypeParam> start(expected.size());
    std::copy(own.begin(), own.end(), start.begin() + rank * count);
    all.upload(start);
    group().all_gather(all.data() + rank * count, count, all.data());
    EXPECT_EQ(all.download(), expected) << count;
  }
}

TYPED_TEST(GpuCollectives, AllToAllTransposesTheBlocks) {
  const int ranks = group().size(), rank = group().rank();
  for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{4099}}) {
    std::vector<TypeParam> expected;
    for (int each = 0; each < ranks; ++each) {
      const auto theirs = values_of<TypeParam>(each, count * ranks);
      expected.insert(expected.end(), theirs.begin() + rank * count, theirs.begin() + (rank + 1) * count);
    }
    const DeviceVector<TypeParam> from(values_of<TypeParam>(rank, count * ranks));
    const auto to = DeviceVector<TypeParam>::poisoned(count * ranks);
    group().all_to_all(from.data(), count, to.data());
    EXPECT_EQ(to.download(), expected) << count;
  }
}

TYPED_TEST(GpuCollectives, BroadcastFromEveryRoot) {
  for (int root = 0; root < group().size(); ++root) {
    const DeviceVector<TypeParam> values(values_of<TypeParam>(group().rank(), 4099));
    group().broadcast(comm_buffer(values.data(), 4099), root);
    EXPECT_EQ(values.download(), values_of<TypeParam>(root, 4099));
  }
}

TEST(GpuCommunicator, BuffersOfTheHostTravelBetweenTheHosts) {
  auto values = values_of<double>(group().rank(), 17);
  group().all_reduce(values.data(), 17);
  EXPECT_EQ(values, all_reduced<double>(17));
  int32_t last = group().rank();
  group().broadcast(comm_buffer(&last, 1), group().size() - 1);
  EXPECT_EQ(last, group().size() - 1);
}

TEST(GpuCommunicator, SeveralTransfersAreUnderWayAndMayBeLeftToTheirEnd) {
  constexpr int64_t k_count = 1000;
  std::vector<DeviceVector<float>> values;
  {
    std::vector<TransferPtr> transfers;
    for (int i = 0; i < 5; ++i) {
      values.emplace_back(values_of<float>(group().rank() + i, k_count));
      transfers.push_back(group().start_all_reduce(comm_buffer(values.back().data(), k_count), Reduction::sum));
    }
    transfers[3]->wait();
    transfers[3]->wait();  // again: nothing more
    transfers[0]->wait();
  }
  for (const auto& vector : values) {
    const auto found = vector.download();
    EXPECT_TRUE(std::all_of(found.begin(), found.end(), [](float value) { return std::isfinite(value); }));
  }
  EXPECT_EQ(values[0].download(), all_reduced<float>(k_count));
}

// Longer than what lies between two ranks: one exchange after the other would wait for ever.
TEST(GpuCommunicator, AllToAllsMessagesGoOnTogether) {
  const int64_t count = int64_t{9} << 17;  // of 8 bytes: 9 MiB for each rank
  const auto pair = group().split(group().rank() / 2, group().rank());
  if (pair->size() == 1) return;  // the last of an odd number
  const std::vector<int64_t> own(static_cast<size_t>(count * 2), pair->rank());
  const DeviceVector<int64_t> from(own), to(std::vector<int64_t>(own.size(), -1));
  pair->all_to_all(from.data(), count, to.data());
  const std::vector<int64_t> found = to.download();
  for (int each = 0; each < 2; ++each) {
    EXPECT_EQ(found[static_cast<size_t>(each * count)], each);
    EXPECT_EQ(found[static_cast<size_t>((each + 1) * count - 1)], each);
  }
}

TEST(GpuCommunicator, AllToAllOfTheHostsMemory) {
  const int ranks = group().size();
  std::vector<int32_t> from, to(static_cast<size_t>(ranks), -1);
  for (int each = 0; each < ranks; ++each) from.push_back(100 * group().rank() + each);
  group().all_to_all(from.data(), 1, to.data());
  for (int each = 0; each < ranks; ++each) EXPECT_EQ(to[static_cast<size_t>(each)], 100 * each + group().rank());
}

struct Ring {
  int next = (group().rank() + 1) % group().size();
  int previous = (group().rank() + group().size() - 1) % group().size();
};

TEST(GpuCommunicator, ARingOfMessagesInBothDirections) {
  const Ring ring;
  for (const int64_t count : {int64_t{1}, int64_t{500'000}}) {
    const DeviceVector<float> own(values_of<float>(group().rank(), count));
    const auto from_previous = DeviceVector<float>::poisoned(count), from_next = DeviceVector<float>::poisoned(count);
    const auto forwards = group().start_send(comm_buffer(own.data(), count), ring.next, 3);
    const auto backwards = group().start_send(comm_buffer(own.data(), count), ring.previous, 16384 + 3);
    group().start_receive(comm_buffer(from_previous.data(), count), ring.previous, 3)->wait();
    group().start_receive(comm_buffer(from_next.data(), count), ring.next, 16384 + 3)->wait();
    forwards->wait();
    backwards->wait();
    EXPECT_EQ(from_previous.download(), values_of<float>(ring.previous, count));
    EXPECT_EQ(from_next.download(), values_of<float>(ring.next, count));
  }
}

// As in a pipeline: activations and gradients of one direction do not wait for each other.
TEST(GpuCommunicator, UpperTagsHaveAnOrderOfTheirOwn) {
  const Ring ring;
  const DeviceVector<int32_t> own({10 * group().rank(), 10 * group().rank() + 1, 10 * group().rank() + 2});
  const auto got = DeviceVector<int32_t>::poisoned(3);
  std::vector<TransferPtr> sends;
  sends.push_back(group().start_send(comm_buffer(own.data(), 1), ring.next, 5));
  sends.push_back(group().start_send(comm_buffer(own.data() + 1, 1), ring.next, 16384));
  sends.push_back(group().start_send(comm_buffer(own.data() + 2, 1), ring.next, 6));
  group().start_receive(comm_buffer(got.data() + 1, 1), ring.previous, 16384)->wait();
  group().start_receive(comm_buffer(got.data(), 1), ring.previous, 5)->wait();
  group().start_receive(comm_buffer(got.data() + 2, 1), ring.previous, 6)->wait();
  const int32_t first = 10 * ring.previous;
  EXPECT_EQ(got.download(), (std::vector<int32_t>{first, first + 1, first + 2}));
}

// A training counts what memory is free once its groups are made: the first message of a pipeline takes none of it.
TEST(GpuCommunicator, NeighboursThatHaveMetTakeNoMoreMemory) {
  test_device();
  host::nccl_habits().connection_bytes = size_t{1} << 20;
  const Ring ring;
  const auto free_bytes = [] {
    size_t free = 0, total = 0;
    check(driver::memory(&free, &total));
    return free;
  };
  const DeviceVector<int32_t> own(std::vector<int32_t>{world().rank()}), got(std::vector<int32_t>{-1});
  {
    const auto pipeline = make_gpu_communicator(world().split(0, world().rank()));
    const size_t alone = free_bytes();
    pipeline->connect_neighbours();
    const size_t met = free_bytes();
    EXPECT_LT(met, alone);
    const auto sent = pipeline->start_send(comm_buffer(own.data(), 1), ring.next, 0);
    pipeline->start_receive(comm_buffer(got.data(), 1), ring.previous, 0)->wait();
    sent->wait();
    EXPECT_EQ(got.download(), std::vector<int32_t>{ring.previous});
    EXPECT_EQ(free_bytes(), met);
    pipeline->barrier();
  }
  host::nccl_habits().connection_bytes = 0;
}

TEST(GpuCommunicator, RanksThatAreNoNeighboursMeetAtTheirFirstMessage) {
  if (group().size() < 4)
    GTEST_SKIP() << "every rank is a neighbour of all: this needs 4 ranks, as in the test comm.gpu.4";
  const int far = group().rank() < 2 ? group().rank() + 2 : group().rank() - 2;
  if (group().rank() >= 4) return;
  const DeviceVector<int32_t> own(std::vector<int32_t>{group().rank()});
  const auto got = DeviceVector<int32_t>::poisoned(1);
  const auto sent = group().start_send(comm_buffer(own.data(), 1), far, 0);
  group().start_receive(comm_buffer(got.data(), 1), far, 0)->wait();
  sent->wait();
  EXPECT_EQ(got.download(), std::vector<int32_t>{far});
}

TEST(GpuCommunicator, PartsOfAGroupExchangeForThemselves) {
  const auto part = group().split(group().rank() % 2, group().rank());
  EXPECT_EQ(part->size(), (group().size() + 1 - group().rank() % 2) / 2);
  EXPECT_EQ(part->rank(), group().rank() / 2);
  const DeviceVector<int64_t> value(std::vector<int64_t>{1});
  part->all_reduce(value.data(), 1);
  EXPECT_EQ(value.download().front(), part->size());
  group().barrier();
}

}  // namespace
}  // namespace tprimat::engine::gpu
