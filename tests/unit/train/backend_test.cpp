#include "train/backend.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <optional>
#include <thread>

#include "base/error.h"
#include "gpu_module/gpu_module.h"

namespace tprimat::engine {
namespace {

// Ranks as threads that do nothing but gather.
class GatheringRanks {
 public:
  explicit GatheringRanks(int size) : size_(size), barrier_(size), blocks_(static_cast<size_t>(size)) {}
  int size() const { return size_; }
  void gather(int rank, const CommBuffer& own, const CommBuffer& all) {
    blocks_[static_cast<size_t>(rank)] = own;
    barrier_.arrive_and_wait();
    for (int other = 0; other < size_; ++other)
      std::memcpy(static_cast<std::byte*>(all.data) + other * own.size(), blocks_[static_cast<size_t>(other)].data,
                  static_cast<size_t>(own.size()));
    barrier_.arrive_and_wait();
  }

 private:
  int size_;
  std::barrier<> barrier_;
  std::vector<CommBuffer> blocks_;
};

class GatheringRank : public Communicator {
 public:
  GatheringRank(GatheringRanks& ranks, int rank) : ranks_(ranks), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return ranks_.size(); }
  TransferPtr start_all_gather(CommBuffer own, CommBuffer all) override {
    ranks_.gather(rank_, own, all);
    return make_self_communicator()->start_all_gather(own, own);
  }
  TransferPtr start_all_reduce(CommBuffer, Reduction) override { return nullptr; }
  TransferPtr start_reduce_scatter(CommBuffer, CommBuffer) override { return nullptr; }
  TransferPtr start_all_to_all(CommBuffer, CommBuffer) override { return nullptr; }
  TransferPtr start_send(CommBuffer, int, int) override { return nullptr; }
  TransferPtr start_receive(CommBuffer, int, int) override { return nullptr; }
  void broadcast(CommBuffer, int) override {}
  void barrier() override {}
  void progress() override {}
  std::unique_ptr<Communicator> split(int, int) override { return nullptr; }

 private:
  GatheringRanks& ranks_;
  int rank_;
};

// What this thread's process sees of its machine's GPUs.
thread_local std::vector<std::string> seen;
thread_local std::optional<int> taken;

GpuModule module_of_seen_gpus() {
  GpuModule module{};
  module.count_devices = [] { return static_cast<int>(seen.size()); };
  module.device_address = [](int index) { return seen.at(static_cast<size_t>(index)); };
  module.make_device = [](int index) -> std::unique_ptr<Accelerator> {
    taken = index;
    return nullptr;
  };
  return module;
}

// What a rank got, or why not.
struct Outcome {
  std::optional<int> gpu;
  std::string refusal;
  ExitStatus status = ExitStatus::done;
};

// Ranks of one machine, each of which sees these GPUs.
std::vector<Outcome> start_ranks(const std::vector<std::vector<std::string>>& visible) {
  const auto size = static_cast<int>(visible.size());
  const GpuModule module = module_of_seen_gpus();
  GatheringRanks ranks(size);
  std::vector<Outcome> outcomes(visible.size());
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        seen = visible[static_cast<size_t>(rank)];
        GatheringRank world(ranks, rank);
        Outcome& outcome = outcomes[static_cast<size_t>(rank)];
        try {
          backend_of(module, world, {rank, size, rank, size});
        } catch (const Error& error) {
          outcome.refusal = error.what();
          outcome.status = error.status();
        }
        outcome.gpu = taken;
      });
  }
  return outcomes;
}

TEST(BackendOfRanks, TakeTheirNumberAmongGpusThatAllOfThemSee) {
  const std::vector<std::string> all{"0000:1b:00.0", "0000:43:00.0"};
  const auto outcomes = start_ranks({all, all});
  EXPECT_EQ(outcomes[0].gpu, 0);
  EXPECT_EQ(outcomes[1].gpu, 1);
}

TEST(BackendOfRanks, TakeTheOnlyGpuThatEachSees) {
  const auto outcomes = start_ranks({{"0000:1b:00.0"}, {"0000:43:00.0"}, {"0000:52:00.0"}});
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.gpu, 0) << outcome.refusal;
  }
}

TEST(BackendOfRanks, AreRefusedWhereTwoSeeTheSameGpuAlone) {
  const auto outcomes = start_ranks({{"0000:1b:00.0"}, {"0000:43:00.0"}, {"0000:1b:00.0"}});
  for (const Outcome& outcome : outcomes) {
    EXPECT_FALSE(outcome.gpu);
    EXPECT_EQ(outcome.status, ExitStatus::missing_component);
    EXPECT_NE(outcome.refusal.find("ranks 0, 2 of "), std::string::npos) << outcome.refusal;
    EXPECT_NE(outcome.refusal.find("share the GPU 0000:1b:00.0"), std::string::npos) << outcome.refusal;
  }
}

TEST(BackendOfRanks, AreRefusedWhereTheirListsOfGpusAreInAnotherOrder) {
  const auto outcomes = start_ranks({{"a", "b"}, {"b", "a"}});
  EXPECT_NE(outcomes[0].refusal.find("ranks 0, 1 of "), std::string::npos) << outcomes[0].refusal;
}

TEST(BackendOfRanks, AreRefusedWhereThereAreMoreThanSeveralGpusThatTheySee) {
  const auto outcomes = start_ranks({{"a", "b"}, {"a", "b"}, {"a", "b"}});
  for (const Outcome& outcome : outcomes) {
    EXPECT_NE(outcome.refusal.find("3 ranks of this machine share 2 GPUs"), std::string::npos) << outcome.refusal;
    EXPECT_EQ(outcome.status, ExitStatus::missing_component);
  }
}

TEST(GpuSeats, OfTheSameAddressOnTwoMachinesAreTwo) {
  EXPECT_NO_THROW(refuse_shared_seats({{"node1 x", "0000:1b:00.0"}, {"node2 y", "0000:1b:00.0"}}));
  EXPECT_NO_THROW(refuse_shared_seats({{"node x", "0000:1b:00.0"}, {"node y", "0000:1b:00.0"}}));  // two containers
}

TEST(GpuSeats, AreRefusedAllAtOnce) {
  try {
    refuse_shared_seats({{"node1 x", "a"}, {"node1 x", "a"}, {"node2 y", "b"}, {"node2 y", "c"}, {"node2 y", "b"}});
    FAIL();
  } catch (const Error& error) {
    ASSERT_EQ(error.problems().size(), 2u);
    EXPECT_EQ(error.problems()[0].what, "ranks 0, 1 of node1 share the GPU a: each needs its own");
    EXPECT_EQ(error.problems()[1].what, "ranks 2, 4 of node2 share the GPU b: each needs its own");
  }
}

}  // namespace
}  // namespace tprimat::engine
