// How close the native trainer comes to this CPU's matrix-product peak: both measured in one run, taking turns, so that
// a busy or throttled machine slows both alike.
//   bench_train_step [rounds [fp32|bf16 [4x512|8x1024|small]]]
// A second MFU is that of the peak between the operations of a step: who else uses the machine slows both.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "device/parallel.h"
#include "probe/gemm_probe.h"
#include "probe/product.h"
#include "train/engine.h"
#include "train/op_report.h"

namespace tprimat {
namespace {

// Llama shapes: one of GPT-2's size, 123.6 M parameters, and that of the built-in default.
ModelSpec llama(bool is_small) {
  ModelSpec model;
  model.name = is_small ? "llama_10m" : "llama124m";
  model.full_name = is_small ? "Llama shape of the built-in default" : "Llama shape of GPT-2's size";
  model.num_layers = is_small ? 8 : 12;
  model.hidden_size = is_small ? 256 : 768;
  model.ffn_hidden_size = is_small ? 768 : 2048;
  model.num_attention_heads = is_small ? 4 : 12;
  model.num_key_value_heads = is_small ? 2 : 12;
  model.head_dim = 64;
  model.vocab_size = is_small ? 8192 : 50257;
  model.max_position_embeddings = 1024;
  model.tied_embeddings = !is_small;
  return model;
}

// "4x512": sequences and tokens of the large model; "small": the batch of the default run.
std::optional<TrainSpec> find_training(std::string_view name, Precision precision) {
  struct Training {
    std::string_view name;
    bool is_small;
    int64_t micro_batch, global_batch, length;
  };
  constexpr std::array k_trainings = {Training{"4x512", false, 4, 4, 512}, Training{"8x1024", false, 8, 8, 1024},
                                      Training{"small", true, 4, 8, 256}};
  const auto found = std::ranges::find(k_trainings, name, &Training::name);
  if (found == k_trainings.end()) return std::nullopt;
  TrainSpec spec;
  spec.model = llama(found->is_small);
  spec.precision = precision;
  spec.sequence_length = found->length;
  spec.micro_batch_size = found->micro_batch;
  spec.global_batch_size = found->global_batch;
  spec.steps = 1'000'000;
  return spec;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double step_seconds(engine::Engine& engine, int64_t step, const engine::TokenSource& tokens) {
  const auto start = SteadyClock::now();
  engine.run_step(step, tokens);
  return seconds_since(start);
}

double rate_of(engine::Product& product, const engine::ProductShape& shape) {
  const auto start = SteadyClock::now();
  product.run();
  return shape.flops() / seconds_since(start);
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The shapes that the probe tries, each by oneDNN and by our own product, in turns between the operations of a step.
// The faster one of each time is what the machine gives at these moments, whoever else uses it. The peak of a round is
// the mean of the shape that is the fastest one over all rounds: the largest of the means of a few samples would be
// that of the luckiest shape.
class PeakBetween {
 public:
  PeakBetween(const GemmPeak& peak, engine::Engine& engine) : engine_(engine) {
    for (const GemmRate& each : peak.shapes) {
      Contest contest{{each.name, each.pass, each.m, each.n, each.k}, {}, {}, {}};
      contest.products.push_back(engine::make_product(contest.shape, peak.precision));
      if (auto own = engine::make_own_product(contest.shape, peak.precision))
        contest.products.push_back(std::move(own));
      contests_.push_back(std::move(contest));
    }
  }
  // Some steps, without the products in between.
  struct Steps {
    int64_t count = 0;
    double seconds = 0;
  };
  Steps measure(int64_t first_step, const engine::TokenSource& tokens) {
    constexpr double k_enough_seconds = 1;
    double unmeasured = 0, of_products = 0;
    Steps steps;
    clock_.call_after_each([&](double took) {
      unmeasured += took;
      if (unmeasured < k_seconds_between) return;
      unmeasured = 0;
      const auto start = SteadyClock::now();
      Contest& contest = contests_[next_++ % contests_.size()];
      contest.samples.push_back(contest.fastest());
      of_products += seconds_since(start);
    });
    engine_.use_clock(&clock_);
    const auto start = SteadyClock::now();
    while (steps.seconds < k_enough_seconds) {
      engine_.run_step(first_step + steps.count++, tokens);
      steps.seconds = seconds_since(start) - of_products;
    }
    engine_.use_clock(nullptr);
    for (Contest& contest : contests_) {
      CHECK(!contest.samples.empty());  // a second has enough operations for several of each shape
      contest.rounds.push_back(mean(std::exchange(contest.samples, {})));
    }
    return steps;
  }
  // Of each round.
  const std::vector<double>& peaks() const {
    const auto of_all = [](const Contest& contest) { return mean(contest.rounds); };
    return std::ranges::max_element(contests_, {}, of_all)->rounds;
  }
  const engine::OpClock& clock() const { return clock_; }  // of all steps so far

 private:
  static constexpr double k_seconds_between = 0.05;

  struct Contest {
    engine::ProductShape shape;
    std::vector<std::unique_ptr<engine::Product>> products;
    std::vector<double> samples, rounds;  // rates; of this round, and the means of those before

    double fastest() {
      double found = 0;
      for (const auto& product : products) {
        product->run();  // fills the caches
        found = std::max(found, rate_of(*product, shape));
      }
      return found;
    }
  };

  engine::Engine& engine_;
  engine::OpClock clock_;
  std::vector<Contest> contests_;
  size_t next_ = 0;
};

// The second MFU of each round, and the operations of all of them.
void report_same_moments(const PeakBetween& between, const std::vector<PeakBetween::Steps>& rounds, double step_flops) {
  const std::vector<double>& peaks = between.peaks();
  std::vector<double> shares;
  PeakBetween::Steps all;
  double work = 0;  // of the peak's products, had they run all the time
  fmt::print("of the peak at the same moments:");
  for (size_t i = 0; i < rounds.size(); ++i) {
    all.count += rounds[i].count, all.seconds += rounds[i].seconds, work += rounds[i].seconds * peaks[i];
    shares.push_back(step_flops * static_cast<double>(rounds[i].count) / rounds[i].seconds / peaks[i]);
    fmt::print(" {:.3f} of {:.0f}", shares.back(), peaks[i] / 1e9);
  }
  fmt::print(
      " GFLOP/s, median {:.3f}\n{}", median(shares),
      engine::render_op_report(engine::make_op_report(between.clock(), all.count, all.seconds, work / all.seconds)));
}

void run(int rounds, const TrainSpec& spec) {
  const Precision precision = spec.precision;
  const double flops = flops_per_token(spec.model, spec.sequence_length, FlopFormula::full) *
                       static_cast<double>(spec.tokens_per_step());
  const auto engine = engine::make_engine(spec);
  const auto tokens = engine::open_token_source(spec.data, {spec.model.vocab_size, spec.sequence_length, spec.seed});
  int64_t step = 1;
  step_seconds(*engine, step++, *tokens);

  std::vector<double> peaks, rates, ratios;
  std::optional<PeakBetween> between;
  std::vector<PeakBetween::Steps> steps_between;
  fmt::print("round  peak GFLOP/s  step s  tokens/s  GFLOP/s    MFU\n");
  for (int round = 0; round < rounds; ++round) {
    const GemmPeak peak = *engine::measure_gemm_peak(precision, engine::thread_count());
    double seconds = 1e30;
    for (int i = 0; i < 3; ++i) seconds = std::min(seconds, step_seconds(*engine, step++, *tokens));
    if (!between) between.emplace(peak, *engine);
    steps_between.push_back(between->measure(step, *tokens));
    step += steps_between.back().count;
    peaks.push_back(peak.flops_per_second), rates.push_back(flops / seconds);
    ratios.push_back(rates.back() / peaks.back());
    fmt::print("{:5}  {:12.1f}  {:6.3f}  {:8.1f}  {:7.1f}  {:.3f}\n", round + 1, peaks.back() / 1e9, seconds,
               static_cast<double>(spec.tokens_per_step()) / seconds, rates.back() / 1e9, ratios.back());
  }
  fmt::print("median of {} rounds, {}, {} threads: peak {:.1f} GFLOP/s, training {:.1f} GFLOP/s, MFU (full) {:.3f}\n",
             rounds, enum_name(precision), engine::thread_count(), median(peaks) / 1e9, median(rates) / 1e9,
             median(ratios));
  report_same_moments(*between, steps_between, flops);
}

}  // namespace
}  // namespace tprimat

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  const auto precision = argc > 2 ? tprimat::parse_enum<tprimat::Precision>(argv[2]) : tprimat::Precision::bf16;
  const auto spec = precision ? tprimat::find_training(argc > 3 ? argv[3] : "4x512", *precision) : std::nullopt;
  if (!spec) return fmt::print(stderr, "usage: bench_train_step [rounds] [fp32|bf16] [4x512|8x1024|small]\n"), 2;
  tprimat::run(rounds, *spec);
  return 0;
}
