// How close the native trainer comes to this CPU's matrix-product peak: both measured in one run, taking turns, so that
// a busy or throttled machine slows both alike.
//   bench_train_step [rounds] [fp32|bf16]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "base/clock.h"
#include "device/parallel.h"
#include "probe/gemm_probe.h"
#include "probe/product.h"
#include "train/engine.h"

namespace tprimat {
namespace {

// A Llama of GPT-2's size: 123.6 M parameters.
TrainSpec llama_124m(Precision precision) {
  TrainSpec spec;
  ModelSpec& model = spec.model;
  model.name = "llama124m";
  model.full_name = "Llama shape of GPT-2's size";
  model.num_layers = 12;
  model.hidden_size = 768;
  model.ffn_hidden_size = 2048;
  model.num_attention_heads = model.num_key_value_heads = 12;
  model.head_dim = 64;
  model.vocab_size = 50257;
  model.max_position_embeddings = 1024;
  model.tied_embeddings = true;
  spec.precision = precision;
  spec.sequence_length = 512;
  spec.micro_batch_size = spec.global_batch_size = 4;
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

// The probe's fastest product, oneDNN's or our own, between the operations of a step: what the machine gives at the
// same moments, whoever else uses it.
class PeakBetween {
 public:
  PeakBetween(const GemmPeak& peak, engine::Engine& engine) : engine_(engine) {
    const auto best = std::ranges::max_element(peak.shapes, {}, &GemmRate::flops_per_second);
    shape_ = {best->name, best->pass, best->m, best->n, best->k};
    product_ = engine::make_product(shape_, peak.precision);
    if (auto own = engine::make_own_product(shape_, peak.precision)) {
      double theirs = 0, ours = 0;
      for (int i = 0; i < k_tries; ++i)
        theirs = std::max(theirs, rate_of(*product_, shape_)), ours = std::max(ours, rate_of(*own, shape_));
      if (ours > theirs) product_ = std::move(own);
    }
  }
  // Of a step without the products in between, and the mean of those.
  struct Rates {
    double seconds, peak;
  };
  Rates measure_step(int64_t step, const engine::TokenSource& tokens) {
    std::vector<double> rates;
    double seconds = 0, unmeasured = 0;
    engine::OpClock clock;
    clock.call_after_each([&](double took) {
      seconds += took, unmeasured += took;
      if (unmeasured < k_seconds_between) return;
      unmeasured = 0;
      product_->run();  // fills the caches
      rates.push_back(rate_of(*product_, shape_));
    });
    engine_.use_clock(&clock);
    engine_.run_step(step, tokens);
    engine_.use_clock(nullptr);
    return {seconds, std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(rates.size())};
  }

 private:
  static constexpr int k_tries = 5;
  static constexpr double k_seconds_between = 0.05;
  engine::Engine& engine_;
  engine::ProductShape shape_;
  std::unique_ptr<engine::Product> product_;
};

void run(int rounds, Precision precision) {
  const TrainSpec spec = llama_124m(precision);
  const double flops = flops_per_token(spec.model, spec.sequence_length, FlopFormula::full) *
                       static_cast<double>(spec.tokens_per_step());
  const auto engine = engine::make_engine(spec);
  const auto tokens = engine::open_token_source(spec.data, {spec.model.vocab_size, spec.sequence_length, spec.seed});
  int64_t step = 1;
  step_seconds(*engine, step++, *tokens);

  std::vector<double> peaks, rates, ratios, same;
  fmt::print("round  peak GFLOP/s  step s  tokens/s  GFLOP/s    MFU   MFU of the peak at the same moments\n");
  for (int round = 0; round < rounds; ++round) {
    const GemmPeak peak = *engine::measure_gemm_peak(precision, engine::thread_count());
    double seconds = 1e30;
    for (int i = 0; i < 3; ++i) seconds = std::min(seconds, step_seconds(*engine, step++, *tokens));
    const PeakBetween::Rates between = PeakBetween(peak, *engine).measure_step(step++, *tokens);
    peaks.push_back(peak.flops_per_second), rates.push_back(flops / seconds);
    ratios.push_back(rates.back() / peaks.back()), same.push_back(flops / between.seconds / between.peak);
    fmt::print("{:5}  {:12.1f}  {:6.3f}  {:8.1f}  {:7.1f}  {:.3f}   {:.3f} of {:.1f} GFLOP/s\n", round + 1,
               peaks.back() / 1e9, seconds, static_cast<double>(spec.tokens_per_step()) / seconds, rates.back() / 1e9,
               ratios.back(), same.back(), between.peak / 1e9);
  }
  fmt::print(
      "median of {} rounds, {}, {} threads: peak {:.1f} GFLOP/s, training {:.1f} GFLOP/s, MFU (full) {:.3f}, of the "
      "peak "
      "at the same moments {:.3f}\n",
      rounds, enum_name(precision), engine::thread_count(), median(peaks) / 1e9, median(rates) / 1e9, median(ratios),
      median(same));
}

}  // namespace
}  // namespace tprimat

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  const auto precision = argc > 2 ? tprimat::parse_enum<tprimat::Precision>(argv[2]) : tprimat::Precision::bf16;
  if (!precision) return fmt::print(stderr, "usage: bench_train_step [rounds] [fp32|bf16]\n"), 2;
  tprimat::run(rounds, *precision);
  return 0;
}
