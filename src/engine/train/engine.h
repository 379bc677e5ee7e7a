#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "comm/rank_groups.h"
#include "data/token_source.h"
#include "model_files/rank_file.h"
#include "nn/op_clock.h"
#include "parameters/parameters.h"
#include "spec/train_spec.h"
#include "text/fields.h"
#include "train/backend.h"

namespace tprimat::engine {

// What one optimizer update did; the same on every rank.
struct UpdateReport {
  double loss = 0.0;       // mean over the step's tokens, nats
  double grad_norm = 0.0;  // global L2 norm before clipping
  double learning_rate = 0.0;
  double loss_scale = 1.0;
  bool overflow = false;  // fp16: the gradient was not finite at this scale
  bool spike = false;     // the loss jumped (AnomalySpec)
  bool skipped = false;   // the weights were left as they were
};

struct MemoryReport {
  int64_t bytes = 0;  // everything the engine allocated on this rank
  std::map<std::string, size_t> by_component;
};

// Part of a weight's local values (from `begin` on) in full precision, or of its optimizer states; may be written to.
struct StatePiece {
  StateKind kind;
  const Parameter& parameter;
  int64_t begin;
  std::variant<std::span<float>, std::span<double>> values;
};
using StateVisitor = std::function<void(const StatePiece&)>;

// What a training is besides its weights and moments.
struct EngineProgress {
  int64_t updates = 0;  // that changed the weights: the count in Adam's bias correction and in the schedule
  double loss_scale = 1.0;
  int64_t steps_since_scale_change = 0;
  double mean_loss = 0;  // of the watch for spikes
  int64_t watched_losses = 0;

  static constexpr auto fields() {
    using P = EngineProgress;
    return field_list(field("updates", &P::updates, "updates that changed the weights"),
                      field("loss_scale", &P::loss_scale, "loss scale of the next step"),
                      field("steps_since_scale_change", &P::steps_since_scale_change, "steps at this loss scale"),
                      field("mean_loss", &P::mean_loss, "running mean of the loss"),
                      field("watched_losses", &P::watched_losses, "losses in the running mean"));
  }
  bool operator==(const EngineProgress&) const = default;
};

// A model, its optimizer and its place in the data: all the state of a training on one rank. One implementation per
// precision.
class Engine {
 public:
  virtual ~Engine() = default;
  // Step 1 is the first; call in order, on all ranks.
  virtual UpdateReport run_step(int64_t step, const TokenSource& tokens) = 0;
  // Mean loss over `batches` global batches from sample `first_sample` on, nats; nothing is changed. On all ranks.
  virtual double evaluate(int64_t first_sample, int64_t batches, const TokenSource& tokens) = 0;

  // Logits of the micro batch that begins with sample `first_sample`: tokens×vocabulary. On one rank only.
  virtual std::vector<double> logits(int64_t first_sample, const TokenSource& tokens) = 0;

  virtual MemoryReport memory() const = 0;
  virtual int64_t parameter_count() const = 0;  // of this rank
  virtual const RankGroups& ranks() const = 0;
  // The own share of everything, in the order of the parameter table. Say adopt_state() after writing to it.
  virtual void visit_state(const StateVisitor& visit) = 0;
  virtual void adopt_state() = 0;
  virtual EngineProgress progress() const = 0;
  virtual void restore_progress(const EngineProgress& progress) = 0;
  // The gradient of the last step, as visit_state shows weights; not averaged where it was not reduced. For tests.
  virtual void visit_gradients(const StateVisitor& visit) = 0;
  // Times every operation from now on; nullptr ends it.
  virtual void use_clock(OpClock* clock) = 0;
};

// Weights are drawn from spec.seed. `world` has as many ranks as the layout. Throws Error for what the native trainer
// cannot do, or when memory is short.
std::unique_ptr<Engine> make_engine(const TrainSpec& spec, std::unique_ptr<Communicator> world,
                                    const Backend& backend = cpu_backend());
// On one rank.
std::unique_ptr<Engine> make_engine(const TrainSpec& spec);

// The same training with every operation in double and unoptimized, whatever spec.precision says: slow, and what the
// engines above are judged by.
std::unique_ptr<Engine> make_reference_engine(const TrainSpec& spec);

}  // namespace tprimat::engine
