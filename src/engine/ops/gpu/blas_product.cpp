#include "ops/gpu/blas_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "device/gpu/context.h"

// Row-major c = a·b is column-major cᵀ = bᵀ·aᵀ: the library's A is our b, its B our a, its m our n.
namespace tprimat::engine::gpu {
namespace {

constexpr int k_candidates = 8;
constexpr int k_timed_runs = 3;
constexpr float k_worth_changing = 0.98f;  // of the first candidate's time

void check_blas(blas::Status status, const char* what) {
  if (status == 0) return;
  const auto text = blas::functions().status_text;
  throw Error(Problem{fmt::format("the matrix library failed to {}: status {}{}{}", what, status,
                                  text != nullptr ? ", " : "", text != nullptr ? text(status) : ""),
                      "GPU matrix product", "run tprimat doctor to check that driver and libraries match"},
              ExitStatus::work_failed);
}

// 256 at most, which is all that the library asks for.
uint32_t alignment_of(const void* memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  return address == 0 ? 256 : static_cast<uint32_t>(std::min<uintptr_t>(address & (~address + 1), 256));
}

// Whether the lines of memory that hold the matrix are its columns.
bool is_transposed(const BlasMatrix& m) { return m.col_stride != 1; }
int64_t line_stride(const BlasMatrix& m) { return is_transposed(m) ? m.col_stride : m.row_stride; }

// Everything that decides which kernel runs.
struct ProductKey {
  std::array<int64_t, 3> sizes;
  std::array<int64_t, 4> strides;  // of a, b, c, aux
  std::array<uint32_t, 5> alignments;
  std::array<blas::Number, 3> numbers;
  std::array<bool, 6> flags;
  blas::BlasEpilogue epilogue;
  auto operator<=>(const ProductKey&) const = default;
};

ProductKey key_of(const BlasProduct& p) {
  return {
      {p.m, p.n, p.k},
      {line_stride(p.a), line_stride(p.b), p.c_stride, p.aux_stride},
      {alignment_of(p.a.data), alignment_of(p.b.data), alignment_of(p.c), alignment_of(p.bias), alignment_of(p.aux)},
      {p.a.number, p.b.number, p.c_number},
      {is_transposed(p.a), is_transposed(p.b), p.accumulate, p.fast_sums, p.a.scale != nullptr,
       product_settings().tf32},
      p.epilogue};
}

template <class Value>
void set(blas::Operation operation, int attribute, const Value& value) {
  check_blas(blas::functions().operation_set(operation, attribute, &value, sizeof value), "describe a product");
}

// The columns of the library's matrix are the lines of memory: `length` values each.
blas::Layout make_layout(blas::Number number, int64_t length, int64_t lines, int64_t stride) {
  blas::Layout layout = nullptr;
  check_blas(blas::functions().layout_create(&layout, static_cast<int>(number), static_cast<uint64_t>(length),
                                             static_cast<uint64_t>(lines), std::max(stride, length)),
             "describe a matrix");
  return layout;
}
blas::Layout layout_of(const BlasMatrix& m, int64_t rows, int64_t cols) {
  return is_transposed(m) ? make_layout(m.number, rows, cols, m.col_stride)
                          : make_layout(m.number, cols, rows, m.row_stride);
}

// What the library knows of a problem: a training repeats the same few dozen products.
struct ProductPlan {
  blas::Operation operation = nullptr;
  blas::Layout a = nullptr, b = nullptr, c = nullptr;  // ours
  std::vector<blas::Candidate> candidates;             // the first is the one to use; none: no kernel
  bool settled = false;                                // by time, or because there is no choice
  bool is_beaten = false;                              // by the operations that it stands for
};

// The library as one GPU uses it.
class ProductLibrary {
 public:
  ProductLibrary() { check_blas(blas::functions().create(&handle), "start"); }
  ~ProductLibrary() {
    const blas::BlasCalls& library = blas::functions();
    for (const auto& [key, plan] : plans) {
      library.operation_destroy(plan.operation);
      for (const blas::Layout layout : {plan.a, plan.b, plan.c}) library.layout_destroy(layout);
    }
    library.destroy(handle);
  }
  ProductLibrary(const ProductLibrary&) = delete;
  ProductLibrary& operator=(const ProductLibrary&) = delete;

  blas::Handle handle = nullptr;
  std::map<ProductKey, ProductPlan> plans;
};

void describe(const BlasProduct& p, int compute, ProductPlan& plan) {
  check_blas(blas::functions().operation_create(&plan.operation, compute, static_cast<int>(blas::Number::float32)),
             "describe a product");
  set(plan.operation, blas::operation::k_transpose_a, is_transposed(p.b) ? blas::k_transposed : blas::k_as_is);
  set(plan.operation, blas::operation::k_transpose_b, is_transposed(p.a) ? blas::k_transposed : blas::k_as_is);
  set(plan.operation, blas::operation::k_epilogue, p.epilogue);
  if (p.fast_sums && blas::operation::k_fast_sums >= 0) set(plan.operation, blas::operation::k_fast_sums, int8_t{1});
  if (p.aux != nullptr) set(plan.operation, blas::operation::k_aux_stride, p.aux_stride);
}

// The library's kernels depend on these pointers' alignment, so they are set before it searches, too.
void set_pointers(const BlasProduct& p, const ProductPlan& plan) {
  if (p.bias != nullptr) set(plan.operation, blas::operation::k_bias_pointer, p.bias);
  if (p.aux != nullptr) set(plan.operation, blas::operation::k_aux_pointer, p.aux);
  if (p.b.scale != nullptr) set(plan.operation, blas::operation::k_scale_a_pointer, p.b.scale);
  if (p.a.scale != nullptr) set(plan.operation, blas::operation::k_scale_b_pointer, p.a.scale);
}

// Part of the context's scratch memory; what the epilogue keeps there lies before it.
struct Workspace {
  std::byte* memory;
  size_t bytes;
};
Workspace workspace(const BlasProduct& p) {
  const Context& here = context();
  size_t taken = 0;
  if (p.bias == here.scratch) taken = (static_cast<size_t>(p.m) * sizeof(float) + 255) / 256 * 256;
  CHECK(taken <= here.scratch_bytes);
  return {here.scratch + taken, here.scratch_bytes - taken};
}

std::vector<blas::Candidate> find_candidates(const BlasProduct& p, const ProductPlan& plan) {
  const blas::BlasCalls& library = blas::functions();
  blas::Preference preference = nullptr;
  check_blas(library.preference_create(&preference), "describe a search");
  const uint64_t limit = workspace(p).bytes;
  check_blas(library.preference_set(preference, blas::preference::k_workspace_bytes, &limit, sizeof limit),
             "describe a search");
  const uint32_t alignments[] = {alignment_of(p.b.data), alignment_of(p.a.data), alignment_of(p.c), alignment_of(p.c)};
  for (int i = 0; i < 4 && blas::preference::k_first_alignment >= 0; ++i)
    check_blas(library.preference_set(preference, blas::preference::k_first_alignment + i, &alignments[i],
                                      sizeof alignments[i]),
               "describe a search");
  std::vector<blas::Candidate> candidates(k_candidates);
  int count = 0;
  const blas::Status status =
      library.find_candidates(of_device<ProductLibrary>().handle, plan.operation, plan.b, plan.a, plan.c, plan.c,
                              preference, k_candidates, candidates.data(), &count);
  library.preference_destroy(preference);
  candidates.resize(static_cast<size_t>(status == 0 ? count : 0));
  std::erase_if(candidates, [&](const blas::Candidate& c) { return c.state != 0 || c.workspace_bytes > limit; });
  return candidates;
}

blas::Status multiply(const BlasProduct& p, const ProductPlan& plan, const blas::Candidate& candidate) {
  const float one = 1.0f, beta = p.accumulate ? 1.0f : 0.0f;
  const Workspace space = workspace(p);
  return blas::functions().multiply(of_device<ProductLibrary>().handle, plan.operation, &one, p.b.data, plan.b,
                                    p.a.data, plan.a, &beta, p.c, plan.c, p.c, plan.c, &candidate.algorithm,
                                    space.memory, space.bytes, context().stream);
}

class Stopwatch {
 public:
  Stopwatch() {
    check(driver::make_event(&first_));
    check(driver::make_event(&last_));
  }
  ~Stopwatch() {
    driver::ignore(driver::destroy_event(first_));
    driver::ignore(driver::destroy_event(last_));
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Of `work` repeated; nothing where it fails.
  template <class Work>
  std::optional<float> time(int repetitions, const Work& work) {
    check(driver::record_event(first_, context().stream));
    for (int i = 0; i < repetitions; ++i)
      if (work() != 0) return std::nullopt;
    check(driver::record_event(last_, context().stream));
    check(driver::finish_event(last_));
    float milliseconds = 0;
    check(driver::elapsed_milliseconds(&milliseconds, first_, last_));
    return milliseconds;
  }

  // Of a few runs behind one that loads the kernels; infinite where one fails.
  template <class Work>
  float time_warm(const Work& work) {
    const bool runs = time(1, work).has_value();
    return runs ? time(k_timed_runs, work).value_or(INFINITY) : INFINITY;
  }

 private:
  Event first_ = nullptr, last_ = nullptr;
};

int64_t bytes_of(blas::Number number) {
  return number == blas::Number::float32                                       ? 4
         : number == blas::Number::bfloat16 || number == blas::Number::float16 ? 2
                                                                               : 1;
}

// Memory in which a product that adds to its result can be made several times; none where there is not enough.
class SpareResult {
 public:
  explicit SpareResult(const BlasProduct& p) {
    const auto bytes = static_cast<size_t>(p.m * p.c_stride * bytes_of(p.c_number));
    if (driver::allocate(&memory_, bytes) == k_success)
      check(driver::fill(memory_, 0, bytes, context().stream));
    else
      driver::ignore(driver::last_error());  // is not said again
  }
  ~SpareResult() {
    if (memory_ != nullptr) driver::ignore(driver::release(memory_));
  }
  SpareResult(const SpareResult&) = delete;
  SpareResult& operator=(const SpareResult&) = delete;
  void* memory() const { return memory_; }

 private:
  void* memory_ = nullptr;
};

// Moves the candidate to use to the front. A result that is overwritten anyway may be written a few times more.
void time_candidates(const BlasProduct& p, ProductPlan& plan) {
  std::optional<SpareResult> spare;
  BlasProduct trial = p;
  if (p.accumulate) {
    trial.c = spare.emplace(p).memory();
    if (trial.c == nullptr) return;
  }
  Stopwatch stopwatch;
  std::vector<float> times;
  for (const blas::Candidate& candidate : plan.candidates)
    times.push_back(stopwatch.time_warm([&] { return multiply(trial, plan, candidate); }));
  const auto best = std::min_element(times.begin(), times.end());
  if (*best < k_worth_changing * times.front())
    std::swap(plan.candidates.front(), plan.candidates[static_cast<size_t>(best - times.begin())]);
}

bool are_faster(const std::function<void()>& parts, const BlasProduct& p, const ProductPlan& plan) {
  const auto run_parts = [&] {
    parts();
    return 0;
  };
  Stopwatch stopwatch;
  const float fused = stopwatch.time_warm([&] { return multiply(p, plan, plan.candidates.front()); });
  return stopwatch.time_warm(run_parts) < k_worth_changing * fused;
}

ProductPlan make_plan(const BlasProduct& p) {
  ProductPlan plan;
  plan.a = layout_of(p.a, p.m, p.k);
  plan.b = layout_of(p.b, p.k, p.n);
  plan.c = make_layout(p.c_number, p.n, p.m, p.c_stride);
  const bool tf32 = product_settings().tf32 && p.a.number == blas::Number::float32;
  for (const int compute : {blas::k_compute_tf32, blas::k_compute_float}) {  // not every GPU has units for tf32
    if (compute == blas::k_compute_tf32 && !tf32) continue;
    if (plan.operation != nullptr) blas::functions().operation_destroy(plan.operation);
    describe(p, compute, plan);
    set_pointers(p, plan);
    plan.candidates = find_candidates(p, plan);
    if (plan.candidates.empty()) continue;
    if (tf32 && compute != blas::k_compute_tf32)
      warn_once(
          "fp32 products run in fp32, not in tf32: this GPU's matrix library has no tf32 kernel for some of them; "
          "expect them to be more exact, but slower");
    break;
  }
  return plan;
}

ProductPlan& plan_for(const BlasProduct& p) {
  const ProductKey key = key_of(p);
  std::map<ProductKey, ProductPlan>& plans = of_device<ProductLibrary>().plans;
  const auto found = plans.find(key);
  if (found == plans.end()) return plans.emplace(key, make_plan(p)).first->second;
  set_pointers(p, found->second);
  return found->second;
}

}  // namespace

ProductSettings& product_settings() {
  static ProductSettings settings;
  return settings;
}

KernelReport& kernel_report() {
  static KernelReport report;
  return report;
}

void warn_once(const std::string& sentence) {
  static std::set<std::string> said;
  if (said.insert(sentence).second) kernel_report().warnings.push_back(sentence);
}

bool try_product(const BlasProduct& p) { return try_product_or(p, nullptr); }

bool try_product_or(const BlasProduct& p, const std::function<void()>& parts) {
  if (p.m == 0 || p.n == 0) return true;
  CHECK(p.k > 0);
  ProductPlan& plan = plan_for(p);
  if (plan.candidates.empty()) return false;
  if (!plan.settled && product_settings().time_candidates && !driver::is_recording(context().stream)) {
    if (plan.candidates.size() > 1) time_candidates(p, plan);
    plan.is_beaten = parts && are_faster(parts, p, plan);
    plan.settled = true;
  }
  if (plan.is_beaten) return false;
  check_blas(multiply(p, plan, plan.candidates.front()), "multiply");
  return true;
}

}  // namespace tprimat::engine::gpu
