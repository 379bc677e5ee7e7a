#include "train/engine.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/error.h"
#include "device/parallel.h"
#include "nn/model.h"
#include "ops/adamw.h"
#include "ops/elementwise.h"

namespace tprimat {
namespace {

// Flat vectors over all weights, in the order of the parameter table.
template <class T>
struct FlatState {
  Slot<T> weights;
  Slot<Accum<T>> master, gradients, first_moment, second_moment;  // master is unused where T is already full precision
};

template <class T>
class TypedEngine final : public Engine {
 public:
  explicit TypedEngine(const TrainSpec& spec)
      : spec_(spec),
        model_(spec.model, Plan{parameters_, plan_, batch()}),
        state_(reserve_state()),
        arena_(plan_),
        tokens_(static_cast<size_t>(batch().tokens())),
        targets_(tokens_.size()),
        sample_(static_cast<size_t>(spec.sequence_length) + 1) {
    model_.prepare(pass());
    initialise_weights();
  }

  UpdateReport run_step(int64_t step, const TokenSource& source) override {
    clear_gradients();
    const double scale = 1.0 / static_cast<double>(spec_.tokens_per_step());
    double loss = 0;
    for (int64_t micro = 0; micro < spec_.gradient_accumulation_steps(); ++micro) {
      read_micro_batch(step, micro, source);
      loss += model_.forward_backward(pass(), tokens_.data(), targets_.data(), scale);
    }
    UpdateReport report{loss * scale, global_grad_norm(), learning_rate_at(spec_.optimizer, step, spec_.steps)};
    if (std::isfinite(report.loss) && std::isfinite(report.grad_norm)) update_weights(step, report);
    return report;
  }

  MemoryReport memory() const override { return {static_cast<int64_t>(arena_.bytes()), plan_.bytes_by_component()}; }
  int64_t parameter_count() const override { return parameters_.count(); }

  void visit_weights(const WeightVisitor& visit) const override {
    for (const Parameter& parameter : parameters_.all()) {
      const Accum<T>* const first = master() + parameter.offset;
      const std::vector<double> values(first, first + parameter.count());
      visit(parameter, values);
    }
  }

 private:
  static constexpr bool k_has_master = !std::is_same_v<T, Accum<T>>;

  BatchShape batch() const { return {spec_.micro_batch_size, spec_.sequence_length}; }
  Pass<T> pass() const { return {arena_, arena_.at(state_.weights), arena_.at(state_.gradients)}; }
  Accum<T>* master() const {
    if constexpr (k_has_master)
      return arena_.at(state_.master);
    else
      return arena_.at(state_.weights);
  }

  FlatState<T> reserve_state() {
    const int64_t size = parameters_.size();
    FlatState<T> state;
    state.weights = plan_.template reserve<T>("weights", size);
    if (k_has_master) state.master = plan_.template reserve<Accum<T>>("master weights", size);
    state.gradients = plan_.template reserve<Accum<T>>("gradients", size);
    state.first_moment = plan_.template reserve<Accum<T>>("optimizer", size);
    state.second_moment = plan_.template reserve<Accum<T>>("optimizer", size);
    return state;
  }

  void initialise_weights() {
    for (const Parameter& parameter : parameters_.all()) {
      Accum<T>* const values = master() + parameter.offset;
      const InitialValues initial(parameter, spec_.seed);
      parallel_ranges(parameter.count(), [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) values[i] = static_cast<Accum<T>>(initial.at(i));
      });
    }
    if (k_has_master) convert<T>(parameters_.size(), master(), arena_.at(state_.weights));
  }

  void clear_gradients() {
    Accum<T>* const gradients = arena_.at(state_.gradients);
    parallel_ranges(parameters_.size(), [&](int64_t begin, int64_t end, int) {
      std::fill(gradients + begin, gradients + end, Accum<T>(0));
    });
  }

  // Sample i of the whole training is sequence i mod GBS of step i / GBS.
  void read_micro_batch(int64_t step, int64_t micro, const TokenSource& source) {
    const int64_t length = spec_.sequence_length;
    for (int64_t s = 0; s < spec_.micro_batch_size; ++s) {
      source.read_sample((step - 1) * spec_.global_batch_size + micro * spec_.micro_batch_size + s, sample_);
      std::copy_n(sample_.begin(), length, tokens_.begin() + s * length);
      std::copy_n(sample_.begin() + 1, length, targets_.begin() + s * length);
    }
  }

  double global_grad_norm() const {
    return std::sqrt(sum_of_squares(parameters_.size(), static_cast<const Accum<T>*>(arena_.at(state_.gradients))));
  }

  void update_weights(int64_t step, const UpdateReport& report) {
    const OptimizerSpec& o = spec_.optimizer;
    const bool clip = o.clip_grad_norm > 0 && report.grad_norm > o.clip_grad_norm;
    AdamwStep update{
        report.learning_rate, o.beta1, o.beta2, o.epsilon, 0.0, clip ? o.clip_grad_norm / report.grad_norm : 1.0, step};
    for (const Parameter& parameter : parameters_.all()) {
      update.weight_decay = parameter.decays ? o.weight_decay : 0.0;
      const int64_t at = parameter.offset;
      adamw_update<T>(update, {parameter.count(), arena_.at(state_.gradients) + at, master() + at,
                               arena_.at(state_.first_moment) + at, arena_.at(state_.second_moment) + at,
                               arena_.at(state_.weights) + at});
    }
  }

  const TrainSpec spec_;
  ParameterTable parameters_;
  ArenaPlan plan_;
  Model<T> model_;
  FlatState<T> state_;
  Arena arena_;
  std::vector<int32_t> tokens_, targets_, sample_;
};

void refuse_untrainable(const TrainSpec& spec) {
  std::vector<Problem> problems = check_train_spec(spec, "training");
  for (Problem& problem : check_trainable(spec.model, "model " + spec.model.name))
    problems.push_back(std::move(problem));
  if (spec.parallel.ranks() != 1)
    problems.push_back(
        {"the native trainer runs on one rank, but the layout asks for more", "parallel", "use TP = PP = DP = CP = 1"});
  if (spec.precision != Precision::fp32 && spec.precision != Precision::bf16)
    problems.push_back(
        {"the native trainer has no " + std::string(enum_name(spec.precision)), "precision", "use fp32 or bf16"});
  if (!problems.empty()) throw Error(std::move(problems));
}

}  // namespace

std::unique_ptr<Engine> make_engine(const TrainSpec& spec) {
  refuse_untrainable(spec);
  set_thread_count(spec.threads);
  if (spec.precision == Precision::bf16) return std::make_unique<TypedEngine<bf16>>(spec);
  return std::make_unique<TypedEngine<float>>(spec);
}

std::unique_ptr<Engine> make_reference_engine(const TrainSpec& spec) {
  TrainSpec in_double = spec;
  in_double.precision = Precision::fp32;  // the nearest that a specification can name
  refuse_untrainable(in_double);
  set_thread_count(in_double.threads);
  return std::make_unique<TypedEngine<double>>(in_double);
}

}  // namespace tprimat
