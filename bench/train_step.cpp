// How close the native trainer comes to this CPU's matrix-product peak: both measured in one run, taking turns, so that
// a busy or throttled machine slows both alike.
//   bench_train_step [rounds] [fp32|bf16]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/clock.h"
#include "device/parallel.h"
#include "probe/gemm_probe.h"
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

void run(int rounds, Precision precision) {
  const TrainSpec spec = llama_124m(precision);
  const double flops = flops_per_token(spec.model, spec.sequence_length, FlopFormula::full) *
                       static_cast<double>(spec.tokens_per_step());
  const auto engine = engine::make_engine(spec);
  const auto tokens = engine::open_token_source(spec.data, {spec.model.vocab_size, spec.sequence_length, spec.seed});
  step_seconds(*engine, 1, *tokens);

  std::vector<double> peaks, rates, ratios;
  fmt::print("round  peak GFLOP/s  step s  tokens/s  model GFLOP/s   MFU\n");
  for (int round = 0; round < rounds; ++round) {
    const double peak = engine::measure_gemm_peak(precision, engine::thread_count())->flops_per_second;
    double seconds = 1e30;
    for (int i = 0; i < 3; ++i) seconds = std::min(seconds, step_seconds(*engine, 2 + 3 * round + i, *tokens));
    peaks.push_back(peak), rates.push_back(flops / seconds), ratios.push_back(flops / seconds / peak);
    fmt::print("{:5}  {:12.1f}  {:6.3f}  {:8.1f}  {:13.1f}  {:.3f}\n", round + 1, peak / 1e9, seconds,
               static_cast<double>(spec.tokens_per_step()) / seconds, rates.back() / 1e9, ratios.back());
  }
  fmt::print("median of {} rounds, {}, {} threads: peak {:.1f} GFLOP/s, training {:.1f} GFLOP/s, MFU (full) {:.3f}\n",
             rounds, enum_name(precision), engine::thread_count(), median(peaks) / 1e9, median(rates) / 1e9,
             median(ratios));
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
