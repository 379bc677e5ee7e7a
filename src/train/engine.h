#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "data/token_source.h"
#include "nn/parameters.h"
#include "spec/train_spec.h"

namespace tprimat {

// What one optimizer update did.
struct UpdateReport {
  double loss = 0.0;       // mean over the step's tokens, nats
  double grad_norm = 0.0;  // global L2 norm before clipping
  double learning_rate = 0.0;
};

struct MemoryReport {
  int64_t bytes = 0;  // everything the engine allocated
  std::map<std::string, size_t> by_component;
};

// One weight and its values in full precision, row by row; they are valid during the call.
using WeightVisitor = std::function<void(const Parameter&, std::span<const double>)>;

// A model, its optimizer and its place in the data: all the state of a training. One implementation per precision.
class Engine {
 public:
  virtual ~Engine() = default;
  // Step 1 is the first; call in order.
  virtual UpdateReport run_step(int64_t step, const TokenSource& tokens) = 0;
  virtual MemoryReport memory() const = 0;
  virtual int64_t parameter_count() const = 0;
  // Every weight, in the order of the parameter table.
  virtual void visit_weights(const WeightVisitor& visit) const = 0;
};

// Weights are drawn from spec.seed. Throws Error for what the native trainer cannot do, or when memory is short.
std::unique_ptr<Engine> make_engine(const TrainSpec& spec);

// The same training with every operation in double and unoptimized, whatever spec.precision says: slow, and what the
// engines above are judged by.
std::unique_ptr<Engine> make_reference_engine(const TrainSpec& spec);

}  // namespace tprimat
