#include "train/engine.h"

#include <fmt/format.h>

#include <cmath>
#include <exception>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "device/parallel.h"
#include "memory/training_plan.h"
#include "telemetry/machine.h"
#include "train/batch_reader.h"
#include "train/loss_watch.h"
#include "train/optimizer.h"
#include "train/stage.h"
#include "train/timed_groups.h"
#include "train/weight_store.h"

namespace tprimat::engine {
namespace {

Error does_not_fit(const std::string& problem) {
  return Error(Problem{problem, "micro_batch_size, sequence_length, model",
                       "reduce one of them, or split the model over more ranks"},
               ExitStatus::work_failed);
}

// What attention backward of a GPU's library takes besides the arena, of more than the device leaves to libraries: the
// gradient of the queries in float, and of keys and values for every query head.
double attention_workspace(const TrainSpec& spec) {
  constexpr double k_bytes_per_value = 4 + 2 * 2, k_left_by_device = 512e6;
  const auto values = static_cast<double>(spec.micro_batch_size * spec.sequence_length *
                                          spec.model.num_attention_heads * spec.model.head_dim) /
                      static_cast<double>(spec.parallel.tensor * spec.parallel.context);
  return std::max(0.0, k_bytes_per_value * values - k_left_by_device);
}

// Memory is promised freely and missed later: without this the kernel would end the training in the middle of a step.
const ArenaPlan& fit_into_memory(const ArenaPlan& plan, const Device& device, double besides) {
  const std::optional<double> available = device.is_host() ? available_memory_bytes("/") : device.free_bytes();
  const double wanted = static_cast<double>(plan.total_bytes()) + besides;
  if (available && wanted > *available)
    throw does_not_fit(fmt::format("the training needs {:.1f} GB of memory and {} has {:.1f} GB left", wanted / 1e9,
                                   device.is_host() ? "this machine" : device.name(), *available / 1e9));
  return plan;
}

// While an exception is on its way, other ranks may never come to what they do together with this one: such work ends
// before memory is released, which waits for all work of a GPU.
class EndOfSharedWork {
 public:
  explicit EndOfSharedWork(Accelerator* accelerator) : accelerator_(accelerator) {}
  ~EndOfSharedWork() {
    if (accelerator_ != nullptr && std::uncaught_exceptions() > exceptions_) accelerator_->abandon();
  }
  EndOfSharedWork(const EndOfSharedWork&) = delete;
  EndOfSharedWork& operator=(const EndOfSharedWork&) = delete;

 private:
  Accelerator* accelerator_;
  int exceptions_ = std::uncaught_exceptions();
};

template <class T>
class TypedEngine final : public Engine {
 public:
  TypedEngine(const TrainSpec& spec, const Backend& backend, const OpTable<T>& ops, RankGroups ranks)
      : spec_(spec),
        backend_(backend),
        compute_{*backend.device, ops, backend.accelerator},
        ranks_(time_groups(std::move(ranks), &clock_, backend.accelerator != nullptr)),
        plan_(plan_training(spec, ranks_.place,
                            {compute_.device.is_host(), ops.fp8_matmul != nullptr, std::is_same_v<T, double>})),
        parameters_(plan_.weights),
        stage_(spec, ranks_.place, plan_, parameters_),
        store_(parameters_, plan_.store),
        optimizer_(spec, parameters_, store_, plan_.optimizer),
        batches_(spec, ranks_.place, plan_.batch),
        arena_(fit_into_memory(plan_.arena, compute_.device,
                               !compute_.device.is_host() && sizeof(T) == 2 ? attention_workspace(spec) : 0.0),
               compute_.device),
        end_of_shared_work_(backend.accelerator),
        loss_scale_(spec.loss_scale, std::is_same_v<T, f16>),
        watch_(spec.anomalies) {
    CHECK(plan_.arena.values().element == sizeof(T) && plan_.arena.values().sum == sizeof(Accum<T>));
    CHECK(plan_.store.data_size == ranks_.data->size());
    store_.attach(arena_, compute_.ops, ranks_);
    stage_.attach(arena_, compute_, ranks_, store_);
    optimizer_.attach(arena_, compute_, ranks_);
    batches_.attach(arena_, compute_.device);
    optimizer_.draw_weights(spec.seed);
    store_.publish_weights();
  }

  UpdateReport run_step(int64_t step, const TokenSource& source) override {
    if (clock_ != nullptr) clock_->begin_step();
    const UpdateReport report = work(step, source);
    if (clock_ != nullptr) clock_->finish_step();
    return report;
  }

  double evaluate(int64_t first_sample, int64_t batches, const TokenSource& source) override {
    double loss = 0;
    OpClock* const clock = std::exchange(clock_, nullptr);  // it times steps
    const OpRange range(compute_.device.is_host() ? clock : nullptr, "evaluation", {.phase = OpPhase::evaluation});
    stage_.use_clock(nullptr);
    for (int64_t batch = 0; batch < batches; ++batch) {
      batches_.read(first_sample + batch * spec_.global_batch_size, source);
      loss += stage_.evaluate(batches_);
    }
    loss = counted_loss(loss);
    ranks_.world->all_reduce(&loss, 1);
    clock_ = clock;
    stage_.use_clock(clock);
    return loss / static_cast<double>(batches * spec_.tokens_per_step());
  }

  std::vector<double> logits(int64_t first_sample, const TokenSource& source) override {
    CHECK(ranks_.world->size() == 1);
    batches_.read(first_sample, source);
    return stage_.logits(batches_);
  }

  MemoryReport memory() const override {
    return {static_cast<int64_t>(arena_.bytes()), plan_.arena.bytes_by_component()};
  }
  int64_t parameter_count() const override { return parameters_.count(); }
  const RankGroups& ranks() const override { return ranks_; }
  void visit_state(const StateVisitor& visit) override { optimizer_.visit_state(visit); }
  void visit_gradients(const StateVisitor& visit) override { optimizer_.visit_gradients(visit); }
  void adopt_state() override {
    optimizer_.round_weights();
    store_.publish_weights();
  }
  EngineProgress progress() const override {
    return {updates_, loss_scale_.value(), loss_scale_.steps_since_change(), watch_.mean(), watch_.losses()};
  }
  void restore_progress(const EngineProgress& progress) override {
    updates_ = progress.updates;
    loss_scale_.restore(progress.loss_scale, progress.steps_since_scale_change);
    watch_.restore(progress.mean_loss, progress.watched_losses);
  }
  void use_clock(OpClock* clock) override {
    clock_ = clock;
    if (clock != nullptr) clock->use_device(compute_.accelerator);
    stage_.use_clock(clock);
  }

 private:
  UpdateReport work(int64_t step, const TokenSource& source) {
    const double tokens = static_cast<double>(spec_.tokens_per_step());
    read_batch((step - 1) * spec_.global_batch_size, source);
    const double loss = stage_.run(batches_, loss_scale_.value() / tokens, store_);
    {
      const OpRange range(clock_, "end of backward", {.phase = OpPhase::backward});
      const OpTimer timer(clock_, "gradient exchange", {});
      store_.finish_gradients(stage_.tied_unit());
    }
    const OpRange range(clock_, "optimizer", {.phase = OpPhase::optimizer});
    UpdateReport report = add_over_ranks(loss / tokens);
    report.learning_rate = learning_rate_at(spec_.optimizer, updates_ + 1, spec_.steps);
    decide(report);
    if (!report.skipped) update_weights(report);
    compute_.device.finish();
    return report;
  }

  void read_batch(int64_t first_sample, const TokenSource& source) {
    const OpRange range(clock_, "tprimat: next batch", {.phase = OpPhase::data});
    batches_.read(first_sample, source);
  }

  // Tensor-parallel ranks know the same losses: one of them counts.
  double counted_loss(double loss) const { return ranks_.place.tensor == 0 ? loss : 0.0; }

  UpdateReport add_over_ranks(double loss) {
    double sums[2] = {counted_loss(loss), optimizer_.sum_of_gradient_squares(clock_)};
    ranks_.world->all_reduce(sums, 2);
    UpdateReport report;
    report.loss_scale = loss_scale_.value();
    report.loss = sums[0];
    report.grad_norm = std::sqrt(sums[1]) / report.loss_scale;
    return report;
  }

  void decide(UpdateReport& report) {
    const bool finite = std::isfinite(report.grad_norm);
    report.overflow = !finite && std::is_same_v<T, f16> && !loss_scale_.at_minimum();
    report.spike = std::isfinite(report.loss) && watch_.is_spike(report.loss);
    report.skipped =
        !finite || !std::isfinite(report.loss) || (report.spike && spec_.anomalies.spike != OnAnomaly::record);
    if (finite)
      loss_scale_.note_success();
    else
      loss_scale_.note_overflow();
  }

  void update_weights(const UpdateReport& report) {
    const double limit = spec_.optimizer.clip_grad_norm;
    const double clip = limit > 0 && report.grad_norm > limit ? limit / report.grad_norm : 1.0;
    {
      const OpTimer timer(clock_, "AdamW", {0, optimizer_.update_bytes()});
      optimizer_.update(report.learning_rate, clip / report.loss_scale, ++updates_);
    }
    const OpTimer timer(clock_, "weight exchange", {});
    store_.publish_weights();
  }

  const TrainSpec spec_;
  const Backend backend_;  // outlives all that lies on its device
  const Compute<T> compute_;
  RankGroups ranks_;
  const TrainingPlan plan_;
  ParameterTable parameters_;
  Stage<T> stage_;
  WeightStore<T> store_;
  Optimizer<T> optimizer_;
  BatchReader batches_;
  Arena arena_;
  EndOfSharedWork end_of_shared_work_;  // goes before the arena
  LossScale loss_scale_;
  AnomalyWatch watch_;
  OpClock* clock_ = nullptr;
  int64_t updates_ = 0;
};

void refuse_untrainable(const TrainSpec& spec, const Backend& backend) {
  std::vector<Problem> problems = check_train_spec(spec, "training");
  for (Problem& problem : check_trainable(spec.model, "model " + spec.model.name))
    problems.push_back(std::move(problem));
  if (spec.precision == Precision::tf32 && backend.device->is_host())
    problems.push_back({"the native trainer has no tf32 on a CPU", "precision", "use fp32, bf16 or fp16"});
  if (!problems.empty()) throw Error(std::move(problems));
  if (spec.parallel.ranks() > 1 && backend.accelerator != nullptr && backend.connect == nullptr)
    throw Error(Problem{"this program was built without NCCL or RCCL, which multi-GPU training needs", "parallel",
                        "build its GPU module on a machine that has them (docs/gpu.md)"},
                ExitStatus::missing_component);
}

template <class T>
std::unique_ptr<Engine> make_typed(const TrainSpec& spec, const Backend& backend, const OpTable<T>& ops,
                                   RankGroups ranks) {
  try {
    return std::make_unique<TypedEngine<T>>(spec, backend, ops, std::move(ranks));
  } catch (const std::bad_alloc&) {
    throw does_not_fit("a training of this size does not fit into memory");
  }
}

}  // namespace

std::unique_ptr<Engine> make_engine(const TrainSpec& spec, std::unique_ptr<Communicator> world,
                                    const Backend& backend) {
  refuse_untrainable(spec, backend);
  set_thread_count(spec.threads);
  const bool deterministic = spec.is_deterministic(!backend.device->is_host());
  if (backend.products != nullptr)
    *backend.products = {
        .tf32 = spec.precision == Precision::tf32, .time_candidates = !deterministic, .unordered_sums = !deterministic};
  RankGroups ranks = make_rank_groups(spec, std::move(world), backend.connect);
  switch (spec.precision) {
    case Precision::bf16:
    case Precision::fp8:  // emulated: see nn/linear.h
      return make_typed<bf16>(spec, backend, *backend.bf16_ops, std::move(ranks));
    case Precision::fp16: return make_typed<f16>(spec, backend, *backend.f16_ops, std::move(ranks));
    default: return make_typed<float>(spec, backend, *backend.f32_ops, std::move(ranks));
  }
}

std::unique_ptr<Engine> make_engine(const TrainSpec& spec) { return make_engine(spec, make_self_communicator()); }

std::unique_ptr<Engine> make_reference_engine(const TrainSpec& spec) {
  TrainSpec in_double = spec;
  in_double.precision = Precision::fp32;  // the nearest that a specification can name
  refuse_untrainable(in_double, cpu_backend());
  set_thread_count(in_double.threads);
  return make_typed<double>(in_double, cpu_backend(), cpu_ops<double>(),
                            make_rank_groups(in_double, make_self_communicator()));
}

}  // namespace tprimat::engine
