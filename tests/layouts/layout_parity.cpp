// Started by mpirun, or with torchrun's variables: trains tiny models in layouts of as many ranks as there are, and
// holds every loss and gradient norm to those of the same training on one rank. Before its first step each does one
// with weights that are NaN, which leaves NaN in all memory of activations and gradients: none of it may reach a later
// step.
//   layout_parity SEED COUNT                 COUNT layouts drawn at random (0: all that the rules allow)
//   layout_parity SEED COUNT STEPS DEVICE    with a GPU for each rank (nvd, amd, or simulated: its kernels run on the
//                                            processor), held to the processor
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "base/error.h"
#include "data/token_source.h"
#include "gpu_module/load_gpu_module.h"
#include "train/loop.h"

namespace tprimat {
namespace {

constexpr double k_tolerance = 1e-5;  // relative, fp32
ModelSpec tiny(const std::string& family) {
  ModelSpec model;
  model.name = model.full_name = family;
  model.num_layers = 8;
  model.hidden_size = 32;
  model.ffn_hidden_size = 64;
  model.num_attention_heads = 8;
  model.num_key_value_heads = family == "gpt" ? 8 : family == "llama" ? 4 : 2;
  model.head_dim = 4;
  model.vocab_size = 101;  // no size divides it
  model.max_position_embeddings = 64;
  model.tied_embeddings = family != "llama";
  model.qkv_bias = family == "qwen2";
  model.qk_norm = family == "qwen3";
  if (family == "mistral") model.sliding_window = 7;
  if (family != "gpt") return model;
  model.norm = NormKind::layer;
  model.mlp = MlpKind::gelu;
  model.position = PositionKind::learned;
  model.linear_bias = true;
  return model;
}

struct Request {
  uint64_t seed = 1;
  size_t count = 0;
  int64_t steps = 20;
  std::string device;
};

TrainSpec training(const std::string& family, int64_t steps) {
  TrainSpec spec;
  spec.model = tiny(family);
  spec.optimizer.learning_rate = 1e-3;
  spec.optimizer.warmup_steps = std::min<int64_t>(5, steps / 2);
  spec.precision = Precision::fp32;
  spec.sequence_length = 32;
  spec.micro_batch_size = 1;
  spec.global_batch_size = 16;
  spec.steps = steps;
  spec.threads = 1;
  return spec;
}

struct Curve {
  std::vector<double> losses, norms;
};

// Each rank sees one simulated GPU, which is its own.
engine::Backend backend_named(const std::string& device, engine::Communicator& world) {
  if (device.empty()) return engine::cpu_backend();
  const engine::GpuVendor vendor = device == "nvd"   ? engine::GpuVendor::nvd
                                   : device == "amd" ? engine::GpuVendor::amd
                                                     : engine::GpuVendor::host;
  return engine::backend_of(engine::load_gpu_module(vendor), world, engine::launcher_place());
}

// A step that is skipped.
void spoil(engine::Engine& engine, const TrainSpec& spec) {
  const engine::EngineProgress progress = engine.progress();
  std::vector<std::vector<float>> kept;
  engine.visit_state([&](const engine::StatePiece& piece) {
    const auto values = std::get<std::span<float>>(piece.values);
    kept.emplace_back(values.begin(), values.end());
    if (piece.kind == engine::StateKind::weights)
      std::fill(values.begin(), values.end(), std::numeric_limits<float>::quiet_NaN());
  });
  engine.adopt_state();
  engine.run_step(1, *engine::open_token_source(spec.data, {spec.model.vocab_size, spec.sequence_length, spec.seed}));
  auto next = kept.begin();
  engine.visit_state([&](const engine::StatePiece& piece) {
    std::copy(next->begin(), next->end(), std::get<std::span<float>>(piece.values).begin());
    ++next;
  });
  engine.adopt_state();
  engine.restore_progress(progress);
}

Curve train(const TrainSpec& spec, std::unique_ptr<engine::Communicator> world, const std::string& device = "") {
  const engine::Backend backend = backend_named(device, *world);
  const auto engine = engine::make_engine(spec, std::move(world), backend);
  spoil(*engine, spec);
  Curve curve;
  engine::run_training(spec, *engine, [&](const StepRecord& record) {
    curve.losses.push_back(record.loss.value());
    curve.norms.push_back(record.grad_norm.value());
  });
  return curve;
}

// Every layout of so many ranks, with each kind of sharing that changes something.
std::vector<TrainSpec> all_layouts(const std::vector<std::string>& families, int64_t ranks, int64_t steps) {
  std::vector<TrainSpec> specs;
  const auto add = [&](const TrainSpec& spec) {
    if (spec.parallel.ranks() == ranks && check_train_spec(spec, "").empty()) specs.push_back(spec);
  };
  for (const std::string& family : families)
    for (const int64_t tensor : {1, 2, 4, 8})
      for (const int64_t pipeline : {1, 2, 4, 8})
        for (const int64_t chunks : {1, 2})
          for (const int64_t context : {1, 2, 4, 8})
            for (const int64_t zero : {0, 1, 2, 3})
              for (const bool sequence : {false, true})
                for (const bool ends : {false, true}) {
                  if (sequence && tensor == 1) continue;
                  if (ranks % (tensor * pipeline * context) != 0) continue;
                  TrainSpec spec = training(family, steps);
                  spec.parallel = {"",      tensor,   pipeline, chunks, ranks / (tensor * pipeline * context),
                                   context, sequence, ends,     zero};
                  if (zero > 0 && spec.parallel.data * context == 1) continue;
                  add(spec);
                }
  return specs;
}

std::string describe(const TrainSpec& spec) {
  const ParallelSpec& p = spec.parallel;
  return fmt::format("{:7} TP{} PP{} VP{} DP{} CP{} ZeRO-{}{}{}", spec.model.name, p.tensor, p.pipeline,
                     p.virtual_pipeline, p.data, p.context, p.zero_stage, p.sequence_parallel ? " SP" : "",
                     p.ends_as_layers ? " ends" : "");
}

double worst_difference(const std::vector<double>& actual, const std::vector<double>& expected) {
  double worst = actual.size() == expected.size() ? 0 : 1e30;
  for (size_t i = 0; i < std::min(actual.size(), expected.size()); ++i)
    worst = std::max(worst, std::isfinite(actual[i]) ? std::fabs(actual[i] / expected[i] - 1) : 1e30);
  return worst;
}

// Whether every rank saw the same bits.
bool same_everywhere(engine::Communicator& world, const std::vector<double>& values) {
  std::vector<double> largest = values, negated(values.size());
  std::transform(values.begin(), values.end(), negated.begin(), [](double value) { return -value; });
  world.all_reduce(largest.data(), static_cast<int64_t>(largest.size()), engine::Reduction::max);
  world.all_reduce(negated.data(), static_cast<int64_t>(negated.size()), engine::Reduction::max);
  for (size_t i = 0; i < values.size(); ++i)
    if (largest[i] != -negated[i]) return false;
  return true;
}

bool check(const TrainSpec& spec, const Curve& expected, engine::Communicator& world, const std::string& device) {
  const Curve curve = train(spec, world.split(0, world.rank()), device);
  const double loss = worst_difference(curve.losses, expected.losses),
               norm = worst_difference(curve.norms, expected.norms);
  const bool same = same_everywhere(world, curve.losses) && same_everywhere(world, curve.norms);
  const bool good = loss <= k_tolerance && norm <= 20 * k_tolerance && same;
  if (world.rank() == 0)
    fmt::print("{} {}: loss {:.1e}, gradient norm {:.1e}{}\n", good ? "ok  " : "FAIL", describe(spec), loss, norm,
               same ? "" : ", NOT THE SAME ON EVERY RANK");
  return good;
}

int run(const Request& request) {
  const std::unique_ptr<engine::Communicator> world = engine::make_world_communicator();
  const std::vector<std::string> families{"llama", "gpt", "qwen2", "qwen3", "mistral"};
  std::vector<TrainSpec> layouts = all_layouts(families, world->size(), request.steps);
  if (request.count > 0) std::shuffle(layouts.begin(), layouts.end(), std::mt19937_64(request.seed));
  if (request.count > 0 && layouts.size() > request.count) layouts.resize(request.count);
  std::map<std::string, Curve> expected;
  int failed = 0;
  for (const TrainSpec& spec : layouts) {
    if (!expected.contains(spec.model.name))
      expected[spec.model.name] = train(training(spec.model.name, request.steps), engine::make_self_communicator());
    if (!check(spec, expected[spec.model.name], *world, request.device)) ++failed;
  }
  if (world->rank() == 0) fmt::print("{} layouts of {} ranks, {} failed\n", layouts.size(), world->size(), failed);
  return failed == 0 && !layouts.empty() ? 0 : 1;
}

}  // namespace
}  // namespace tprimat

int main(int argc, char** argv) {
  try {
    tprimat::Request request;
    if (argc > 1) request.seed = std::strtoull(argv[1], nullptr, 10);
    if (argc > 2) request.count = std::strtoull(argv[2], nullptr, 10);
    if (argc > 3) request.steps = std::strtoll(argv[3], nullptr, 10);
    if (argc > 4) request.device = argv[4];
    return tprimat::run(request);
  } catch (const tprimat::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
