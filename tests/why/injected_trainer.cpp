// tprimat-train with a known cause of slowness inside. The linker gives it the engine that this file decorates
// (--wrap of make_engine, CMakeLists.txt); everything else is the product's own.
//
//   TPRIMAT_INJECTION=data:0.02           every step waits 20 ms for its first sample
//   TPRIMAT_INJECTION=copies:100          every forward norm copies 256 KB a hundred times more, as its own operation
//   TPRIMAT_INJECTION=collectives:2e-9    every collective of more than 1 KB takes 2 ns more for each byte
//   TPRIMAT_INJECTION=slow_step:0.2:5     every fifth step takes 0.2 s longer
//   TPRIMAT_INJECTION=pin:1:0             rank 1 runs on processor 0 alone
//
// TPRIMAT_TURNS=FILE:SIDE:RANKS: this training and another take turns, a step each, so that what else the machine does
// meets both: FILE holds, as 64-bit numbers, the steps that each rank of side 0 and then of side 1 has done.
// TPRIMAT_INJECTED=FILE: rank 0 writes there what it measured of each step: {"step": 3, "seconds": 0.0201}.
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "comm/communicator.h"
#include "nn/op_clock.h"
#include "train/engine.h"
#include "train/loop.h"

namespace tprimat::engine {
namespace {

constexpr size_t k_copied_bytes = 1 << 18;     // few enough to leave the caches of other operations as they are
constexpr int64_t k_min_delayed_bytes = 1024;  // smaller ones exchange the loss and the norm

struct Injection {
  enum class Kind { none, data, copies, collectives, slow_step, pin };
  Kind kind = Kind::none;
  double amount = 0;
  int64_t every = 1;
};

Injection read_injection() {
  const char* text = std::getenv("TPRIMAT_INJECTION");
  if (text == nullptr || *text == 0) return {};
  std::istringstream stream(text);
  std::string name;
  Injection injection;
  char colon = 0;
  std::getline(stream, name, ':');
  stream >> injection.amount >> colon >> injection.every;
  constexpr std::pair<std::string_view, Injection::Kind> k_kinds[] = {{"data", Injection::Kind::data},
                                                                      {"copies", Injection::Kind::copies},
                                                                      {"collectives", Injection::Kind::collectives},
                                                                      {"slow_step", Injection::Kind::slow_step},
                                                                      {"pin", Injection::Kind::pin}};
  for (const auto& [known, kind] : k_kinds)
    if (name == known) injection.kind = kind;
  if (injection.kind == Injection::Kind::none)
    throw Error(Problem{fmt::format("'{}' is no injection", text), "TPRIMAT_INJECTION", "see injected_trainer.cpp"});
  return injection;
}

// Of this process: operations are plain functions and know nothing else.
struct Injected {
  const Injection injection = read_injection();
  double seconds = 0;  // of the step under way
  OpClock* clock = nullptr;
  std::vector<std::byte> from, to;

  bool is(Injection::Kind kind) const { return injection.kind == kind; }
};
Injected& injected() {
  static Injected state;
  return state;
}

void sleep_more(double seconds) {
  const auto begin = SteadyClock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  injected().seconds += seconds_since(begin);
}

void copy_more() {
  Injected& state = injected();
  if (!state.is(Injection::Kind::copies)) return;
  if (state.from.empty()) {
    state.from.resize(k_copied_bytes, std::byte{1});
    state.to.resize(state.from.size());
  }
  const auto begin = SteadyClock::now();
  {
    const OpTimer timer(state.clock, "layout copy", {0, 2.0 * k_copied_bytes * state.injection.amount});
    for (int copy = 0; copy < state.injection.amount; ++copy) {
      std::memcpy(state.to.data(), state.from.data(), k_copied_bytes);
      state.from[0] = state.to[k_copied_bytes - 1];  // no copy is left out
    }
  }
  state.seconds += seconds_since(begin);
}

// The product's operations, of which the norms copy more.
template <class T>
const OpTable<T>* with_copies(const OpTable<T>* ops) {
  static const OpTable<T>* const given = ops;
  static const OpTable<T> table = [] {
    OpTable<T> changed = *given;
    changed.rmsnorm_forward = [](const RmsNormShape& shape, const T* x, const T* weight, T* y, Accum<T>* rstd) {
      given->rmsnorm_forward(shape, x, weight, y, rstd);
      copy_more();
    };
    changed.add_rmsnorm_forward = [](const RmsNormShape& shape, const ResidualSum<T>& sum, const T* weight, T* y,
                                     Accum<T>* rstd) {
      given->add_rmsnorm_forward(shape, sum, weight, y, rstd);
      copy_more();
    };
    return changed;
  }();
  return &table;
}

class SlowTransfer : public Transfer {
 public:
  SlowTransfer(TransferPtr inner, int64_t bytes) : inner_(std::move(inner)), bytes_(bytes) {}
  ~SlowTransfer() override { finish(); }
  void wait() override { finish(); }

 private:
  void finish() {
    if (!inner_) return;
    inner_->wait();
    inner_.reset();
    if (bytes_ >= k_min_delayed_bytes) sleep_more(static_cast<double>(bytes_) * injected().injection.amount);
  }
  TransferPtr inner_;
  int64_t bytes_;
};

// A group of ranks over slower connections.
class SlowCommunicator : public Communicator {
 public:
  explicit SlowCommunicator(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  TransferPtr start_all_reduce(CommBuffer values, Reduction reduction) override {
    return slow(inner_->start_all_reduce(values, reduction), values.size());
  }
  TransferPtr start_all_gather(CommBuffer own, CommBuffer all) override {
    return slow(inner_->start_all_gather(own, all), all.size());
  }
  TransferPtr start_reduce_scatter(CommBuffer all, CommBuffer own) override {
    return slow(inner_->start_reduce_scatter(all, own), all.size());
  }
  TransferPtr start_all_to_all(CommBuffer from, CommBuffer to) override {
    return slow(inner_->start_all_to_all(from, to), from.size());
  }
  TransferPtr start_send(CommBuffer values, int to, int tag) override { return inner_->start_send(values, to, tag); }
  TransferPtr start_receive(CommBuffer values, int from, int tag) override {
    return inner_->start_receive(values, from, tag);
  }
  void connect_neighbours() override { inner_->connect_neighbours(); }
  void broadcast(CommBuffer values, int root) override { inner_->broadcast(values, root); }
  void barrier() override { inner_->barrier(); }
  void progress() override { inner_->progress(); }
  std::unique_ptr<Communicator> split(int color, int key) override {
    return std::make_unique<SlowCommunicator>(inner_->split(color, key));
  }

 private:
  TransferPtr slow(TransferPtr transfer, int64_t bytes) const {
    if (inner_->size() == 1) return transfer;
    return std::make_unique<SlowTransfer>(std::move(transfer), bytes);
  }
  std::unique_ptr<Communicator> inner_;
};

// The first sample of each step is late.
class SlowSource : public TokenSource {
 public:
  explicit SlowSource(const TokenSource& inner) : inner_(inner) {}
  void read_sample(int64_t index, std::span<int32_t> tokens) const override {
    if (!std::exchange(waited_, true)) sleep_more(injected().injection.amount);
    inner_.read_sample(index, tokens);
  }

 private:
  const TokenSource& inner_;
  mutable bool waited_ = false;
};

class InjectedEngine : public Engine {
 public:
  explicit InjectedEngine(std::unique_ptr<Engine> inner) : inner_(std::move(inner)) {
    const char* const path = std::getenv("TPRIMAT_INJECTED");
    if (path != nullptr && ranks().world->rank() == 0) report_.emplace(path);
  }

  UpdateReport run_step(int64_t step, const TokenSource& tokens) override {
    injected().seconds = 0;
    const Injection& injection = injected().injection;
    if (injection.kind == Injection::Kind::slow_step && step % injection.every == 0) sleep_more(injection.amount);
    const SlowSource late(tokens);
    const UpdateReport report = inner_->run_step(step, injection.kind == Injection::Kind::data ? late : tokens);
    if (report_) report_->write_line(fmt::format(R"({{"step": {}, "seconds": {}}})", step, injected().seconds));
    return report;
  }
  double evaluate(int64_t first_sample, int64_t batches, const TokenSource& tokens) override {
    return inner_->evaluate(first_sample, batches, tokens);
  }
  std::vector<double> logits(int64_t first_sample, const TokenSource& tokens) override {
    return inner_->logits(first_sample, tokens);
  }
  MemoryReport memory() const override { return inner_->memory(); }
  int64_t parameter_count() const override { return inner_->parameter_count(); }
  const RankGroups& ranks() const override { return inner_->ranks(); }
  void visit_state(const StateVisitor& visit) override { inner_->visit_state(visit); }
  void adopt_state() override { inner_->adopt_state(); }
  EngineProgress progress() const override { return inner_->progress(); }
  void restore_progress(const EngineProgress& progress) override { inner_->restore_progress(progress); }
  void visit_gradients(const StateVisitor& visit) override { inner_->visit_gradients(visit); }
  void use_clock(OpClock* clock) override {
    injected().clock = clock;
    inner_->use_clock(clock);
  }

 private:
  std::unique_ptr<Engine> inner_;
  std::optional<LineWriter> report_;
};

class Turns {
 public:
  Turns(const std::string& text, int64_t rank) {
    const size_t colon = text.find(':');
    if (std::sscanf(text.c_str() + colon, ":%ld:%ld", &side_, &ranks_) != 2) fail(text);
    const int file = ::open(text.substr(0, colon).c_str(), O_RDWR | O_CLOEXEC);
    const size_t bytes = static_cast<size_t>(2 * ranks_) * sizeof(int64_t);
    void* const shared = file < 0 ? MAP_FAILED : ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared == MAP_FAILED) fail(text);
    ::close(file);
    done_ = {static_cast<int64_t*>(shared), static_cast<size_t>(2 * ranks_)};
    own_ = &done_[static_cast<size_t>(side_ * ranks_ + rank)];
  }

  // After a step: until the other side has done its own. Side 0 is ahead.
  void wait() {
    std::atomic_ref(*own_).store(++steps_);
    const auto begin = SteadyClock::now();
    while (others_done() < steps_ + side_) {
      if (seconds_since(begin) > k_longest_seconds)
        throw Error(Problem{"the other side takes no step", "TPRIMAT_TURNS", ""});
      std::this_thread::sleep_for(
          std::chrono::milliseconds(2));  // rarely: a thread that wakes up beside a step evicts its caches
    }
  }

 private:
  static constexpr double k_longest_seconds = 200;
  [[noreturn]] static void fail(const std::string& text) {
    throw Error(Problem{fmt::format("cannot take turns by '{}'", text), "TPRIMAT_TURNS", "see injected_trainer.cpp"});
  }
  int64_t others_done() const {
    const auto others = done_.subspan(static_cast<size_t>((1 - side_) * ranks_), static_cast<size_t>(ranks_));
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int64_t& steps : others) least = std::min(least, std::atomic_ref(steps).load());
    return least;
  }

  int64_t side_ = 0, ranks_ = 1, steps_ = 0;
  std::span<int64_t> done_;
  int64_t* own_ = nullptr;
};

// The kernel shares a processor out among sessions, of which each training is one. Where this is allowed, this one
// comes before what else the machine does.
void come_first() {
  constexpr std::string_view k_before_others = "-15";
  const int file = ::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const auto written = ::write(file, k_before_others.data(), k_before_others.size());
  ::close(file);
}

void pin_to_processor(int64_t processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(processor), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0)
    throw Error(Problem{fmt::format("cannot run on processor {} alone", processor), "TPRIMAT_INJECTION", ""});
}

}  // namespace

// As the linker calls the product's functions, and those that their callers get instead.
#define TPRIMAT_MAKE_ENGINE                                                                                  \
  "_ZN7tprimat6engine11make_engineERKNS_9TrainSpecESt10unique_ptrINS0_12CommunicatorESt14default_deleteIS5_" \
  "EERKNS0_7BackendE"
std::unique_ptr<Engine> make_real_engine(const TrainSpec& spec, std::unique_ptr<Communicator> world,
                                         const Backend& backend) __asm__("__real_" TPRIMAT_MAKE_ENGINE);
std::unique_ptr<Engine> make_injected_engine(const TrainSpec& spec, std::unique_ptr<Communicator> world,
                                             const Backend& backend) __asm__("__wrap_" TPRIMAT_MAKE_ENGINE);

std::unique_ptr<Engine> make_injected_engine(const TrainSpec& spec, std::unique_ptr<Communicator> world,
                                             const Backend& backend) {
  const Injected& state = injected();
  come_first();
  if (state.is(Injection::Kind::pin) && world->rank() == static_cast<int>(state.injection.amount))
    pin_to_processor(state.injection.every);
  if (state.is(Injection::Kind::collectives)) world = std::make_unique<SlowCommunicator>(std::move(world));
  Backend changed = backend;
  changed.f32_ops = with_copies(backend.f32_ops);
  changed.bf16_ops = with_copies(backend.bf16_ops);
  return std::make_unique<InjectedEngine>(make_real_engine(spec, std::move(world), changed));
}

#define TPRIMAT_RUN_TRAINING "_ZN7tprimat6engine12run_trainingERKNS_9TrainSpecERNS0_6EngineElRKNS0_13TrainingHooksE"
void run_real_training(const TrainSpec& spec, Engine& engine, int64_t first_step,
                       const TrainingHooks& hooks) __asm__("__real_" TPRIMAT_RUN_TRAINING);
void run_training_in_turns(const TrainSpec& spec, Engine& engine, int64_t first_step,
                           const TrainingHooks& hooks) __asm__("__wrap_" TPRIMAT_RUN_TRAINING);

void run_training_in_turns(const TrainSpec& spec, Engine& engine, int64_t first_step, const TrainingHooks& hooks) {
  const char* const text = std::getenv("TPRIMAT_TURNS");
  if (text == nullptr) return run_real_training(spec, engine, first_step, hooks);
  Turns turns(text, engine.ranks().world->rank());
  TrainingHooks changed = hooks;  // these are called between the times of two steps
  changed.step = [&](const StepRecord& record) { hooks.step(record), turns.wait(); };
  changed.extra_step = [&](const StepRecord& record) { hooks.extra_step(record), turns.wait(); };
  run_real_training(spec, engine, first_step, changed);
}

}  // namespace tprimat::engine
