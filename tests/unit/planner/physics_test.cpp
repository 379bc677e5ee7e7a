#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "drawn_workloads.h"

namespace tprimat::planner {
namespace {

constexpr double k_rounding = 1e-12;

std::string describe(const Drawn& drawn) {
  const Workload& w = drawn.workload;
  const Layout& l = w.layout;
  return fmt::format("{} {} {} {} SL {} GBS {} MBS {} TP {} CP {} PP {} VP {} DP {} EP {} ETP {}", w.shape.full_name,
                     drawn.machine.id, w.family->id, enum_name(w.precision), w.sequence_length, w.global_batch,
                     l.micro_batch, l.tensor, l.context, l.pipeline, l.chunks, l.data, l.expert, l.expert_tensor);
}

// Each rule holds for dense and sparse models.
class Physics : public testing::TestWithParam<const std::vector<std::string>*> {
 protected:
  template <class Check>
  void for_each_draw(unsigned seed, const Check& check) {
    constexpr int k_rounds = 1000;
    std::mt19937 random(seed);
    for (int round = 0; round < k_rounds; ++round) {
      const Drawn drawn = draw(random, *GetParam());
      check(drawn);
      if (HasFailure()) {
        ADD_FAILURE() << "round " << round << ": " << describe(drawn);
        return;
      }
    }
  }
};

StepTime step_of(const Drawn& drawn) {
  return time_step(drawn.workload, drawn.machine, resolve_rates(built_in_parameters(), drawn.machine, drawn.workload));
}

TEST_P(Physics, EveryPartOfAStepIsFiniteAndNotNegative) {
  for_each_draw(1, [](const Drawn& drawn) {
    const StepTime t = step_of(drawn);
    for (const double part : {t.products, t.attention, t.elementwise, t.ends, t.recompute, t.tensor, t.context,
                              t.experts, t.transfers, t.data, t.bubble, t.optimizer, t.overhead}) {
      EXPECT_TRUE(std::isfinite(part));
      EXPECT_GE(part, -k_rounding * t.total());
    }
    EXPECT_GT(t.total(), 0);
  });
}

TEST_P(Physics, MoreBandwidthOrPeakNeverSlowsAStep) {
  for_each_draw(3, [](const Drawn& drawn) {
    const double before = seconds_of(drawn.workload, drawn.machine);
    for (double Machine::*const figure :
         {&Machine::memory_bandwidth, &Machine::link_bandwidth, &Machine::network_bandwidth, &Machine::pair_bandwidth,
          &Machine::peak_16, &Machine::peak_8, &Machine::memory_bytes})
      for (const double factor : {1.1, 2.0, 10.0}) {
        Machine faster = drawn.machine;
        faster.*figure *= factor;
        EXPECT_LE(seconds_of(drawn.workload, faster), before * (1 + k_rounding)) << factor;
      }
  });
}

TEST_P(Physics, BetterBalanceNeverSlowsAStep) {
  for_each_draw(5, [](const Drawn& drawn) {
    if (!drawn.workload.shape.experts) return;
    Workload uneven = drawn.workload;
    double last = 0;
    for (const double load : {1.0, 1.1, 1.5, 2.0, 4.0}) {
      uneven.expert_load = load;
      const double seconds = seconds_of(uneven, drawn.machine);
      EXPECT_GE(seconds, last * (1 - k_rounding)) << load;
      last = seconds;
    }
  });
}

// Latencies and launches apart, seconds are bytes and FLOPs over rates.
TEST_P(Physics, TwiceAllRatesIsHalfTheTime) {
  for_each_draw(7, [](const Drawn& drawn) {
    if (drawn.workload.family->own_trainer) return;
    const Workload& w = drawn.workload;
    Machine fast = drawn.machine;
    for (double Machine::*const figure :
         {&Machine::memory_bandwidth, &Machine::link_bandwidth, &Machine::network_bandwidth, &Machine::pair_bandwidth,
          &Machine::peak_16, &Machine::peak_8, &Machine::peak_4})
      fast.*figure *= 2;
    const auto without_latency = [&](const Machine& machine) {
      Rates rates = resolve_rates(built_in_parameters(), machine, w);
      for (double Rates::*const latency :
           {&Rates::link_latency, &Rates::exchange_latency, &Rates::gather_latency, &Rates::layer_overhead,
            &Rates::layer_start, &Rates::step_start, &Rates::node_start, &Rates::expert_launch, &Rates::cast_launch})
        rates.*latency = 0;
      return time_step(w, machine, rates).total();
    };
    const double slow = without_latency(drawn.machine);
    EXPECT_NEAR(without_latency(fast), slow / 2, 1e-9 * slow);
    const double before = seconds_of(w, drawn.machine), after = seconds_of(w, fast);
    EXPECT_LE(after, before);
    EXPECT_GE(after, before / 2 * (1 - 1e-9));
  });
}

// One more round of micro-batches takes no less time, and at most the share of time that it has of the work.
TEST_P(Physics, TimeGrowsWithTheBatchByNoMoreThanItsShare) {
  for_each_draw(11, [](const Drawn& drawn) {
    if (drawn.workload.family->own_trainer) return;
    Workload more = drawn.workload;
    const Layout& l = more.layout;
    more.global_batch += l.data * l.micro_batch * l.pipeline;
    const double before = seconds_of(drawn.workload, drawn.machine), after = seconds_of(more, drawn.machine);
    const double work = static_cast<double>(more.global_batch) / static_cast<double>(drawn.workload.global_batch);
    EXPECT_GE(after, before * (1 - k_rounding));
    EXPECT_LE(after, before * work * (1 + 1e-9));
  });
}

// By steps of whole tiles on every rank. Attention grows with the square.
TEST_P(Physics, TimeGrowsWithTheSequenceByNoMoreThanItsSquare) {
  constexpr int64_t k_tile = 128;
  for_each_draw(13, [](const Drawn& drawn) {
    if (drawn.workload.family->own_trainer) return;
    Workload longer = drawn.workload;
    const Layout& l = longer.layout;
    longer.sequence_length += k_tile * l.context * l.tensor;
    const double before = seconds_of(drawn.workload, drawn.machine), after = seconds_of(longer, drawn.machine);
    const double growth =
        static_cast<double>(longer.sequence_length) / static_cast<double>(drawn.workload.sequence_length);
    constexpr double k_expert_tiles = 0.02;  // rows of an expert fill their tiles less evenly
    EXPECT_GE(after, before * (1 - k_expert_tiles));
    EXPECT_LE(after, before * growth * growth * (1 + k_expert_tiles));
  });
}

// One token more or less changes the extents of tiles and nothing else: never half of a step.
TEST_P(Physics, OneMoreTokenIsATileAtMost) {
  for_each_draw(17, [](const Drawn& drawn) {
    if (drawn.workload.family->own_trainer) return;
    const auto seconds = [&](int64_t length) {
      Workload other = drawn.workload;
      other.sequence_length = length;
      return seconds_of(other, drawn.machine);
    };
    const int64_t length = drawn.workload.sequence_length;
    // Neither length is a multiple of 8, and a tile holds both.
    EXPECT_NEAR(seconds(length + 259), seconds(length + 257), 0.02 * seconds(length));
  });
}

INSTANTIATE_TEST_SUITE_P(Models, Physics, testing::Values(&dense_models(), &sparse_models()),
                         [](const auto& models) { return models.index == 0 ? "Dense" : "Sparse"; });

// The best layout, whatever it is, gains by all that is better.
class BestPlan : public testing::TestWithParam<const char*> {
 protected:
  static PlanRequest request() {
    PlanRequest request = sample_request(16);
    request.shape = find_counted_model(GetParam())->spec;
    request.sequence_length = 4096, request.global_batch = 64;
    return request;
  }
  static double best_seconds(const PlanRequest& request) {
    const SearchOutcome outcome = search_layouts(request, built_in_parameters(), 1);
    return outcome.ranked.empty() ? INFINITY : outcome.ranked.front().time.total();
  }
};

constexpr double k_alike = 1e-4;  // layouts closer than this are ranked by simplicity

TEST_P(BestPlan, MoreOfAnythingNeverSlowsIt) {
  for (const char* gpu : {"H100", "MI300X"}) {
    PlanRequest request = BestPlan::request();
    request.machine = *find_machine(gpu);
    const double before = best_seconds(request);
    for (double Machine::*const figure : {&Machine::memory_bytes, &Machine::memory_bandwidth, &Machine::link_bandwidth,
                                          &Machine::network_bandwidth, &Machine::peak_16}) {
      PlanRequest better = request;
      better.machine.*figure *= 1.5;
      EXPECT_LE(best_seconds(better), before * (1 + k_alike)) << gpu;
    }
  }
}

TEST_P(BestPlan, BetterBalanceNeverSlowsIt) {
  PlanRequest request = BestPlan::request();
  request.machine = *find_machine("B200");
  double last = 0;
  for (const double load : {1.0, 1.3, 2.0}) {
    request.expert_load = load;
    const double seconds = best_seconds(request);
    EXPECT_GE(seconds, last * (1 - k_alike)) << load;
    last = seconds;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, BestPlan, testing::Values("llama3_8b", "mixtral_8x7b", "deepseek_v2_lite"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace tprimat::planner
