#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "world.h"

namespace tprimat::engine {
namespace {

std::unique_ptr<Communicator> all_ranks;

// Says what failed and where; only rank 0 tells the rest.
class FailurePrinter : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed())
      std::fprintf(stderr, "rank %d of %d: %s:%d: %s\n", world().rank(), world().size(),
                   result.file_name() != nullptr ? result.file_name() : "", result.line_number(), result.message());
  }
};

void print_failures_only() {
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new FailurePrinter);
}

// Ends as the program does.
int report(const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  abort_ranks(3);
  return 3;
}

// Rank 1 ends with an error while a transfer of its own is under way and the others wait for it.
int fail_on_one_rank() {
  try {
    const auto ranks = make_world_communicator();
    std::vector<float> values(1 << 20, 1.0f), received(1 << 20);
    const auto coming = ranks->start_receive(comm_buffer(received.data(), 1 << 20), 0, 7);  // never sent
    if (ranks->rank() == 1) throw std::runtime_error("rank 1 fails on purpose");
    ranks->all_reduce(values.data(), 1 << 20);
    std::fprintf(stderr, "rank %d went on\n", ranks->rank());
  } catch (const std::exception& error) {
    return report(error);
  }
  return 0;
}

// Works on without end, until somebody kills one of the ranks.
int exchange_for_ever() {
  try {
    const auto ranks = make_world_communicator();
    std::vector<float> values(1 << 20, 1.0f);
    for (bool told = false;; told = true) {
      ranks->all_reduce(values.data(), 1 << 20, Reduction::max);
      if (told) continue;
      std::puts("all have met");
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    return report(error);
  }
}

// No rank waits for another, or looks at its connections.
int compute_for_ever() {
  const auto ranks = make_world_communicator();
  std::puts("all have met");
  std::fflush(stdout);
  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
}

int run_tests() {
  all_ranks = make_world_communicator();
  if (world().rank() != 0) print_failures_only();
  const int status = RUN_ALL_TESTS();
  all_ranks.reset();
  return status;
}

}  // namespace

Communicator& world() { return *all_ranks; }

}  // namespace tprimat::engine

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "--fail") return tprimat::engine::fail_on_one_rank();
  if (what == "--exchange") return tprimat::engine::exchange_for_ever();
  if (what == "--compute") return tprimat::engine::compute_for_ever();
  return tprimat::engine::run_tests();
}
