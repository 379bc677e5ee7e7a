#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "unit/why/sample_traces.h"
#include "why/make_ledger.h"
#include "why/step_pieces.h"
#include "why/work_rows.h"

// Whatever the traces hold, nothing is lost and nothing counts twice.
namespace tprimat::results {
namespace {

using Random = std::mt19937;

int64_t up_to(Random& random, int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random); }

SampleStep random_step(Random& random, const SampleStep& like) {
  SampleStep step;
  for (const SampleOperation& each : like) {
    const int64_t calls = up_to(random, 3) == 0 ? up_to(random, 3) : 1;
    for (int64_t i = 0; i < calls; ++i) {
      step.push_back(each);
      step.back().device = up_to(random, 300'000);
      step.back().host = 100 + up_to(random, 40'000);
      if (up_to(random, 5) == 0) step.back().before = up_to(random, 3'000'000);
      if (up_to(random, 9) == 0) step.back().during = "enumerate(DataLoader)";
      if (up_to(random, 9) == 0) step.back().shapes = "[64,64] [64,64]";
    }
  }
  step.push_back(like[0]);
  return step;
}

// Kernels on a second queue, some without a launch, some of zero length.
void add_other_queue(Random& random, logs::Trace& trace) {
  const size_t events = trace.events.size();
  for (size_t i = 0; i < events; i += 3) {
    logs::GpuEvent event = trace.events[i];
    event.stream = 20;
    event.span.begin += up_to(random, 50'000);
    event.span.end = event.span.begin + up_to(random, 1'000) * (i % 2 == 0 ? 1 : 0);
    if (up_to(random, 1) == 0) event.launched = -1, event.launcher = logs::k_none;
    trace.events.push_back(event);
  }
}

SideInput random_side(Random& random, const std::string& label, bool on_gpu) {
  SampleTrace sample(on_gpu);
  const SampleStep like = random_step(random, sample_step());
  const int64_t steps = 1 + up_to(random, 6);
  for (int64_t i = 0; i < steps; ++i) sample.add(random_step(random, like));
  if (on_gpu) add_other_queue(random, sample.trace);
  SideInput side;
  side.label = label;
  side.ranks.push_back(std::move(sample.trace));
  return side;
}

double total(const StepWork& work) {
  double sum = 0;
  const auto add = [&](const std::vector<double>& series, double factor) {
    sum += factor * std::accumulate(series.begin(), series.end(), 0.0) / static_cast<double>(series.size());
    for (const double value : series) EXPECT_GE(value, 0.0);
  };
  for (const WorkRow& row : work.rows) add(row.seconds, 1), add(row.gap_seconds, 1), add(row.long_seconds, 1);
  for (const auto& series : work.moments) add(series, 1);
  add(work.after_mark, -1);
  return sum;
}

class Closing : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Devices, Closing, testing::Bool(),
                         [](const auto& each) { return each.param ? "Gpu" : "Processor"; });

TEST_P(Closing, PiecesFillTheWindowsOnce) {
  Random random(7);
  for (int round = 0; round < 60; ++round) {
    const SideInput side = random_side(random, "A", GetParam());
    const StepPieces cut = cut_steps(side.ranks[0], nullptr, "A");
    int64_t at = cut.windows.front().span.begin;
    for (const Piece& piece : cut.pieces) {
      ASSERT_EQ(piece.span.begin, at);
      ASSERT_GT(piece.span.end, piece.span.begin);
      at = piece.span.end;
    }
    ASSERT_EQ(at, cut.windows.back().span.end);
    const StepWork work = collect_work(side.ranks[0], cut);
    const double mean =
        std::accumulate(work.step_seconds.begin(), work.step_seconds.end(), 0.0) / double(work.step_seconds.size());
    EXPECT_NEAR(total(work), mean, 1e-12);
  }
}

TEST_P(Closing, TermsAddUpAndSwappedSidesNegate) {
  Random random(11);
  for (int round = 0; round < 60; ++round) {
    const SideInput a = random_side(random, "A", GetParam()), b = random_side(random, "B", GetParam());
    const Ledger forth = make_ledger(a, b), back = make_ledger(b, a);
    double sum = 0;
    for (size_t i = 0; i < forth.terms.size(); ++i) {
      sum += forth.terms[i].seconds;
      EXPECT_NEAR(forth.terms[i].seconds, -back.terms[i].seconds, 1e-11) << enum_name(forth.terms[i].cause);
      EXPECT_EQ(forth.terms[i].cause, static_cast<Cause>(i));
    }
    for (const auto& [side, times] :
         {std::pair(&forth.a, &LedgerTerm::a_seconds), std::pair(&forth.b, &LedgerTerm::b_seconds)}) {
      double step = 0;  // what belongs to several terms counts in one
      for (const LedgerTerm& each : forth.terms) step += each.*times;
      EXPECT_NEAR(step, side->step_seconds, 1e-11);
    }
    EXPECT_NEAR(sum, forth.gap_seconds, 1e-12);
    EXPECT_EQ(forth.terms.back().seconds, 0.0);
  }
}

TEST(Closing, AnEmptyOperationCountsAsACall) {
  SampleStep step = sample_step();
  step.push_back({"aten::empty_kernel", "vectorized_elementwise_kernel", "[1]", 0});
  const logs::Trace trace = sample_trace(step);
  const StepWork work = collect_work(trace, cut_steps(trace, nullptr, "A"));
  const auto row = std::ranges::find(work.rows, "aten::empty_kernel", [](const WorkRow& r) { return r.key.operation; });
  ASSERT_NE(row, work.rows.end());
  EXPECT_DOUBLE_EQ(row->calls, 1.0);
  EXPECT_EQ(row->mean_seconds(), 0.0);
}

}  // namespace
}  // namespace tprimat::results
