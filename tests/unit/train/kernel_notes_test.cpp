#include "train/log_line.h"

#include <gtest/gtest.h>

namespace tprimat::engine {
namespace {

// Rank 1 of two, whose other rank gives what the test says to a maximum.
class SecondOfTwo : public Communicator {
 public:
  explicit SecondOfTwo(bool same) : same_(same) {}
  int rank() const override { return 1; }
  int size() const override { return 2; }
  TransferPtr start_all_reduce(CommBuffer values, Reduction) override {
    auto* const bounds = static_cast<double*>(values.data);
    if (!same_) bounds[0] += 1;
    return make_self_communicator()->start_all_reduce(values, Reduction::max);
  }
  TransferPtr start_all_gather(CommBuffer, CommBuffer) override { return nullptr; }
  TransferPtr start_reduce_scatter(CommBuffer, CommBuffer) override { return nullptr; }
  TransferPtr start_all_to_all(CommBuffer, CommBuffer) override { return nullptr; }
  TransferPtr start_send(CommBuffer, int, int) override { return nullptr; }
  TransferPtr start_receive(CommBuffer, int, int) override { return nullptr; }
  void broadcast(CommBuffer, int) override {}
  void barrier() override {}
  void progress() override {}
  std::unique_ptr<Communicator> split(int, int) override { return nullptr; }

 private:
  bool same_;
};

using Sentences = std::vector<std::string>;

TEST(KernelNotes, OneRankSaysItsWarningsOnce) {
  KernelReport report{"cudnn", "own", {"a", "b"}};
  const auto world = make_self_communicator();
  EXPECT_EQ(take_shared_warnings(report, *world), (Sentences{"a", "b"}));
  EXPECT_EQ(take_shared_warnings(report, *world), Sentences());
  EXPECT_EQ(render_kernel_line(report), "kernels | attention cudnn forward, own backward |");
  EXPECT_EQ(render_kernel_line({}), "");
}

TEST(KernelNotes, WhatAllRanksSayIsSaidByTheFirst) {
  SecondOfTwo same(true), other(false);
  KernelReport report{"own", "own", {"a"}};
  EXPECT_EQ(take_shared_warnings(report, same), Sentences());
  EXPECT_TRUE(report.warnings.empty());
  report.warnings = {"a"};
  EXPECT_EQ(take_shared_warnings(report, other), Sentences{"rank 1: a"});
  report.warnings = {"later"};
  EXPECT_EQ(take_own_warnings(report, other), Sentences{"rank 1: later"});
}

}  // namespace
}  // namespace tprimat::engine
