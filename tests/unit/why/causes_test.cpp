#include <gtest/gtest.h>

#include <cmath>

#include "unit/why/sample_traces.h"
#include "why/make_ledger.h"

// One cause is injected into a made trace; its term holds all of the gap.
namespace tprimat::results {
namespace {

const LedgerTerm& term(const Ledger& ledger, Cause cause) { return ledger.terms[static_cast<size_t>(cause)]; }

SideInput side(const std::string& label, logs::Trace trace) {
  SideInput input;
  input.label = label;
  input.ranks.push_back(std::move(trace));
  return input;
}

void expect_closed(const Ledger& ledger) {
  double sum = 0;
  for (const LedgerTerm& each : ledger.terms) sum += each.seconds;
  EXPECT_NEAR(sum, ledger.gap_seconds, 1e-12);
  EXPECT_NEAR(term(ledger, Cause::unexplained).seconds, 0.0, 1e-9);
  EXPECT_TRUE(ledger.resolved);
}

// The term has all of the gap but what launching and waiting for the device add.
void expect_alone(const Ledger& ledger, Cause cause, double seconds) {
  expect_closed(ledger);
  for (const LedgerTerm& each : ledger.terms)
    EXPECT_NEAR(each.seconds, each.cause == cause ? seconds : 0.0, 2e-8) << enum_name(each.cause);
}

class Causes : public testing::TestWithParam<bool> {
 protected:
  Ledger ledger(const SampleStep& changed, int steps = 3) const {
    return make_ledger(side("A", sample_trace(sample_step(), steps, GetParam())),
                       side("B", sample_trace(changed, steps, GetParam())));
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Causes, testing::Bool(),
                         [](const auto& each) { return each.param ? "Gpu" : "Processor"; });

TEST_P(Causes, NothingChanged) {
  const Ledger equal = ledger(sample_step());
  expect_alone(equal, Cause::products, 0.0);
  EXPECT_TRUE(equal.findings.empty());
}

TEST_P(Causes, SlowerProduct) {
  SampleStep step = sample_step();
  step[0].device += 70'000;
  const Ledger slower = ledger(step);
  expect_alone(slower, Cause::products, 70e-6);
  ASSERT_EQ(slower.findings.size(), 1u);
  EXPECT_NE(slower.findings[0].find("aten::mm [512,256] [256,1024]"), std::string::npos) << slower.findings[0];
}

TEST_P(Causes, SlowerAttention) {
  SampleStep step = sample_step();
  step[1].device += 70'000;
  expect_alone(ledger(step), Cause::attention, 70e-6);
}

TEST_P(Causes, SlowerNorm) {
  SampleStep step = sample_step();
  step[3].device += 70'000;
  expect_alone(ledger(step), Cause::memory_bound, 70e-6);
}

TEST_P(Causes, SlowerCommunication) {
  SampleStep step = sample_step();
  step[6].device += 70'000;
  expect_alone(ledger(step), Cause::communication, 70e-6);
}

TEST_P(Causes, WaitingForInput) {
  SampleStep step = sample_step();
  step[0].before = 20'000'000, step[0].during = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
  expect_alone(ledger(step), Cause::data, 20e-3);
}

TEST_P(Causes, PythonBeforeTheStep) {
  SampleStep step = sample_step();
  step[0].before = 5'000'000;
  expect_alone(ledger(step), Cause::launch, 5e-3);
}

TEST_P(Causes, ACopyThatOneSideLacks) {
  SampleStep step = sample_step();
  step.insert(step.begin() + 4, {"aten::clone", "copy_kernel", "[512,1024]", 60'000});
  expect_alone(ledger(step), Cause::one_sided, 60e-6);
}

TEST_P(Causes, MoreCallsOfACopy) {
  SampleStep step = sample_step();
  step.insert(step.begin() + 4, step[4]);
  expect_alone(ledger(step), Cause::one_sided, 40e-6);
}

TEST_P(Causes, Recomputation) {
  SampleStep step = sample_step();
  SampleStep again(step.begin(), step.begin() + 5);
  for (SampleOperation& each : again) each.phase = logs::Phase::recompute;
  step.insert(step.begin() + 5, again.begin(), again.end());
  expect_alone(ledger(step), Cause::work, 400e-6);
}

// Recomputes five operations, each after 50 us of the host.
SampleStep recomputing_step() {
  SampleStep step = sample_step();
  SampleStep again(step.begin(), step.begin() + 5);
  for (SampleOperation& each : again) each.phase = logs::Phase::recompute, each.before = 50'000;
  step.insert(step.begin() + 5, again.begin(), again.end());
  return step;
}

// The forward pass calls the same operations with the same shapes.
TEST(Processor, TheHostsTimeBeforeARecomputedOperationIsRecomputations) {
  const Ledger found = make_ledger(side("A", sample_trace(sample_step(), 3, false)),
                                   side("B", sample_trace(recomputing_step(), 3, false)));
  expect_alone(found, Cause::work, 650e-6);
}

// As where PyTorch unpacks what it saved.
TEST(Processor, AnOperationThatRecomputesOthersDoesNothingItself) {
  logs::Trace b = sample_trace(recomputing_step(), 3, false);
  b.names.push_back("MmBackward0");
  std::vector<logs::HostEvent> around;
  for (const logs::HostEvent& each : b.host_events) {
    if (each.phase != logs::Phase::recompute) continue;
    logs::HostEvent outer = each;
    outer.span.begin -= 50'000, outer.name = static_cast<uint32_t>(b.names.size() - 1);
    outer.phase = logs::Phase::backward, outer.shapes = logs::k_none;
    around.push_back(outer);
  }
  ASSERT_EQ(around.size(), 15u);
  b.host_events.insert(b.host_events.end(), around.begin(), around.end());
  const Ledger found = make_ledger(side("A", sample_trace(sample_step(), 3, false)), side("B", std::move(b)));
  expect_alone(found, Cause::work, 650e-6);
}

// A's product has no counterpart in B, and B has two others.
TEST_P(Causes, OtherProductsAreNotOneOperation) {
  SampleStep step = sample_step();
  step[2].operation = "aten::baddbmm", step[2].device = 160'000;
  step.insert(step.begin() + 3, {"aten::bmm", "gemm_64x64", "[1,64,32] [1,32,64]", 30'000});
  const Ledger found = ledger(step);
  expect_closed(found);
  const LedgerTerm& products = term(found, Cause::products);
  EXPECT_NEAR(products.seconds, 40e-6, 2e-8);
  ASSERT_EQ(products.details.size(), 1u);
  EXPECT_EQ(products.details[0].what, "matmul");
  EXPECT_NEAR(*products.details[0].a_seconds, 150e-6, 1e-9);
  EXPECT_NEAR(*products.details[0].b_seconds, 190e-6, 1e-9);
}

TEST_P(Causes, ThePartThatIsNamedChangesAsItsTermDoes) {
  SampleStep step = sample_step();
  step[0].device += 70'000, step[2].device += 60'000, step[5].device -= 90'000;
  const Ledger found = ledger(step);
  EXPECT_NEAR(term(found, Cause::products).seconds, 40e-6, 2e-8);
  EXPECT_LT(term(found, Cause::products).details[0].seconds, 0);
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_NE(found.findings[0].find("mostly aten::mm [512,256] [256,1024]: 0.100 ms in A, 0.170 ms in B"),
            std::string::npos)
      << found.findings[0];
}

TEST_P(Causes, ProductsBesideTheirRatesAlone) {
  SampleStep before = sample_step();
  for (SampleOperation& each : before)
    if (each.operation == "aten::mm" || each.operation == "aten::addmm") each.shapes += " bf16";
  SampleStep slower = before;
  slower[0].device += 100'000;
  // 2 x 512 x 256 x 1024 FLOP; all products have this size.
  const double size = 512.0 * 256 * 1024, alone = 2 * size / 50e-6;
  const auto sentence = [&](const std::vector<ProductRate>& rates) {
    const SideInput a = side("A", sample_trace(before, 3, GetParam()));
    return make_ledger(a, side("B", sample_trace(slower, 3, GetParam())), rates).findings.at(0);
  };
  const std::string known = sentence({{"bf16", size, alone}});
  EXPECT_NE(known.find("; products reach 32 % in B of the rate that their sizes reach alone"), std::string::npos)
      << known;
  for (const ProductRate& other :
       {ProductRate{"bf16", 1e12, alone}, ProductRate{"fp32", size, alone}, ProductRate{"bf16", 0, alone}})
    EXPECT_EQ(sentence({other}).find("reach alone"), std::string::npos);
}

TEST_P(Causes, TwiceTheTokens) {
  SampleStep step = sample_step();
  step[0].shapes = "[1024,256] [256,1024]", step[0].device *= 2;
  step[1].shapes = "[8,8,128,64] [8,8,128,64]", step[1].device *= 2;
  step[2].shapes = "[256] [1024,1024] [1024,256]", step[2].device *= 2;
  step[5].shapes = "[1024,1024] [1024,256]", step[5].device *= 2;
  expect_closed(ledger(step));
  EXPECT_NEAR(term(ledger(step), Cause::work).seconds, 450e-6, 1e-6);
  EXPECT_NEAR(term(ledger(step), Cause::products).seconds, 0, 1e-6);
}

TEST_P(Causes, SmallerMicroBatches) {
  SampleStep half;
  const SampleStep whole = sample_step();
  for (int i = 0; i < 2; ++i)
    for (size_t each = 0; each < 6; ++each) half.push_back(whole[each]);
  const char* halves[] = {
      "[256,256] [256,1024]", "[2,8,128,64] [2,8,128,64]", "[256] [256,1024] [1024,256]", "[256,256]",
      "[256,1024]",           "[1024,256] [256,256]"};
  for (size_t i = 0; i < half.size(); ++i) half[i].shapes = halves[i % 6], half[i].device = half[i].device * 6 / 10;
  half.push_back(
      {"aten::add_", "vectorized_elementwise_kernel", "[1024,256]", 20'000, 5'000, 0, "", logs::Phase::backward});
  half.push_back(whole[6]), half.push_back(whole[7]);
  expect_alone(ledger(half), Cause::micro_batches, 0.2 * 520e-6 + 20e-6);
}

TEST_P(Causes, OneSlowStepInFive) {
  SampleTrace calm(GetParam()), slow(GetParam());
  SampleStep late = sample_step();
  late[2].before = 10'000'000;
  for (int i = 0; i < 10; ++i) {
    SampleStep step = sample_step();
    step[3].device += 100 * (i % 3);
    calm.add(step), slow.add(i % 5 == 4 ? late : step);
  }
  const Ledger found = make_ledger(side("A", calm.trace), side("B", slow.trace));
  expect_closed(found);
  EXPECT_NEAR(term(found, Cause::outliers).seconds, found.gap_seconds, 0.01 * found.gap_seconds);
  EXPECT_GT(found.gap_seconds, 1e-3);
}

// Rank 1 takes longer for a product, so rank 0 waits in the all-reduce.
TEST_P(Causes, ALateRank) {
  const auto ranks = [](int64_t late) {
    SideInput input;
    SampleStep waiting = sample_step(), longer = sample_step();
    waiting[6].device += late, longer[2].device += late;
    for (const SampleStep* step : {&waiting, &longer}) {
      input.ranks.push_back(sample_trace(*step, 3, GetParam()));
      input.ranks.back().rank = static_cast<int64_t>(input.ranks.size()) - 1;
    }
    return input;
  };
  SideInput even = ranks(0), uneven = ranks(200'000);
  even.label = "A", uneven.label = "B";
  const Ledger found = make_ledger(even, uneven);
  expect_alone(found, Cause::waiting, 200e-6);
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_NE(found.findings[0].find("rank 1 is late by 0.200 ms"), std::string::npos) << found.findings[0];
}

// Operations of PyTorch have small ones within them, and most of a product's pieces are short.
logs::Trace with_pieces(logs::Trace trace) {
  const logs::HostEvent outer = trace.host_events.front();
  const auto events = trace.host_events;
  trace.names.push_back("aten::resolve_conj");
  for (const logs::HostEvent& each : events)
    for (int piece = 1; each.name == outer.name && piece <= 4; ++piece) {
      logs::HostEvent inner = each;
      inner.name = static_cast<uint32_t>(trace.names.size() - 1), inner.shapes = logs::k_none;
      inner.span = {each.span.begin + 2'000 * piece, each.span.begin + 2'000 * piece + 1'000};
      trace.host_events.push_back(inner);
    }
  return trace;
}

TEST(ProcessorCauses, AProductInPiecesDoesNotStandStill) {
  SampleStep step = sample_step(), slower = sample_step();
  step[0].device = 4'000'000, slower[0].device = 5'000'000;
  const Ledger found = make_ledger(side("A", with_pieces(sample_trace(step, 10, false))),
                                   side("B", with_pieces(sample_trace(slower, 10, false))));
  expect_alone(found, Cause::products, 1e-3);
}

TEST(GpuCauses, AKernelOfNoKnownClass) {
  SampleStep step = sample_step();
  step.push_back({"my::op", "zzz", "", 90'000});
  const Ledger found = make_ledger(side("A", sample_trace(sample_step())), side("B", sample_trace(step)));
  expect_alone(found, Cause::unknown_kernels, 90e-6);
}

// Of idle time in a trace without its host nobody knows that the host is late.
TEST(GpuCauses, IdleTimeThatNothingExplains) {
  const auto bare = [](int64_t before) {
    SampleStep step = sample_step();
    step[3].before = before;
    logs::Trace trace = sample_trace(step);
    trace.host_events.clear();
    for (logs::GpuEvent& event : trace.events) event.launcher = logs::k_none, event.launched = -1;
    return trace;
  };
  const Ledger found = make_ledger(side("A", bare(0)), side("B", bare(900'000)));
  ASSERT_FALSE(found.findings.empty());
  EXPECT_TRUE(found.findings[0].starts_with("idle device: +")) << found.findings[0];
  EXPECT_NE(found.findings[0].find("record the host's operations too"), std::string::npos) << found.findings[0];
}

TEST(GpuCauses, AWaitOfTheHost) {
  SampleTrace plain, waiting;
  for (int i = 0; i < 3; ++i) plain.add(sample_step()), waiting.add(sample_step());
  // Each step's second half is launched only after the device has run dry for 300 us within a synchronisation.
  logs::Trace& trace = waiting.trace;
  constexpr int64_t k_late = 300'000;
  logs::Trace shifted = trace;
  for (logs::StepMark& mark : shifted.marks)
    mark.span.begin += k_late * (mark.step - 1), mark.span.end += k_late * mark.step;
  const size_t of_step = sample_step().size();
  for (size_t i = 0; i < shifted.events.size(); ++i) {
    const int64_t shift = k_late * static_cast<int64_t>(i / of_step + (i % of_step >= 4 ? 1 : 0));
    logs::GpuEvent& event = shifted.events[i];
    event.span.begin += shift, event.span.end += shift;
    if (i % of_step == 4) {
      const int64_t ran_dry = shifted.events[i - 1].span.end;
      logs::HostEvent wait;
      wait.name = static_cast<uint32_t>(shifted.names.size());
      wait.kind = logs::HostEventKind::runtime;
      wait.span = {ran_dry - 50'000, event.span.begin - 1'000};
      shifted.host_events.push_back(wait);
      event.launched = event.span.begin;
    }
  }
  shifted.names.push_back("cudaStreamSynchronize");
  const Ledger found = make_ledger(side("A", plain.trace), side("B", shifted));
  expect_closed(found);
  EXPECT_NEAR(term(found, Cause::synchronisation).seconds, 299e-6, 3e-6);
}

}  // namespace
}  // namespace tprimat::results
