#include "why/match_work.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

namespace tprimat::results {
namespace {

using logs::KernelClass;
using logs::Phase;

constexpr double k_same_count = 0.02, k_same_volume = 0.02;
constexpr double k_same_ratio = 0.25;  // of a number of calls to the ratio of the micro-batches
constexpr size_t k_fewest_factors = 8;
constexpr double k_known = 0.5;  // a part of the keys counts where both sides know it for this share of the time

bool is_product(KernelClass kernel_class) {
  return kernel_class == KernelClass::matmul || kernel_class == KernelClass::convolution ||
         kernel_class == KernelClass::attention;
}

bool is_near(double ratio, double expected, double tolerance) {
  return ratio > 0 && std::abs(std::log(ratio / expected)) <= std::log1p(tolerance);
}

double time_where(const StepWork& work, const std::function<bool(const WorkRow&)>& holds) {
  double sum = 0;
  for (const WorkRow& row : work.rows)
    if (holds(row)) sum += row.mean_seconds();
  return sum;
}

struct Known {
  bool phases = false, operations = false, shapes = false;
};

Known known_by_both(const StepWork& a, const StepWork& b) {
  const auto known = [&](const std::function<bool(const WorkRow&)>& holds) {
    return std::ranges::all_of(std::array{&a, &b}, [&](const StepWork* side) {
      const auto computes = [](const WorkRow& row) { return row.key.kernel_class != KernelClass::collective; };
      const auto both = [&](const WorkRow& row) { return computes(row) && holds(row); };
      return time_where(*side, both) >= k_known * time_where(*side, computes);
    });
  };
  return {known([](const WorkRow& row) { return row.key.phase != Phase::unknown; }),
          known([](const WorkRow& row) { return row.has_operation; }),
          known([](const WorkRow& row) { return !row.key.shapes.empty(); })};
}

// The rows of both sides that share something.
struct Rows {
  std::vector<size_t> a, b;
};

class Matcher {
 public:
  Matcher(const StepWork& a, const StepWork& b, std::optional<double> micro_batches)
      : a_(a), b_(b), known_(known_by_both(a, b)), taken_a_(a.rows.size()), taken_b_(b.rows.size()) {
    match_.micro_batches = micro_batches;
  }

  WorkMatch match() {
    if (!match_.micro_batches) match_.micro_batches = find_micro_batches();
    same_work_ = has_same_products();
    const bool by_shapes = known_.shapes;
    for_groups([&](const WorkKey& key) { return reduced(key, by_shapes); },
               [this](const WorkKey& key, const Rows& rows) { pair_same(key, rows); });
    if (known_.operations)
      for_groups([&](const WorkKey& key) { return reduced(key, false); },
                 [this](const WorkKey& key, const Rows& rows) { pair_operation(key, rows); });
    for_groups(
        [](const WorkKey& key) {
          return WorkKey{key.kernel_class, {}, "", ""};
        },
        [this](const WorkKey& key, const Rows& rows) { pair_class(key, rows); });
    match_.uniform_factor = find_uniform_factor();
    return std::move(match_);
  }

 private:
  WorkKey reduced(const WorkKey& key, bool with_shapes) const {
    WorkKey part = key;
    if (!known_.phases) part.phase = Phase::unknown;
    if (!known_.operations && key.kernel_class != KernelClass::collective) part.operation.clear();
    if (!with_shapes) part.shapes.clear();
    return part;
  }

  void for_groups(const std::function<WorkKey(const WorkKey&)>& reduce,
                  const std::function<void(const WorkKey&, const Rows&)>& visit) {
    std::map<WorkKey, Rows> groups;
    for (size_t i = 0; i < a_.rows.size(); ++i)
      if (!taken_a_[i]) groups[reduce(a_.rows[i].key)].a.push_back(i);
    for (size_t i = 0; i < b_.rows.size(); ++i)
      if (!taken_b_[i]) groups[reduce(b_.rows[i].key)].b.push_back(i);
    for (const auto& [key, rows] : groups) visit(key, rows);
  }

  struct Totals {
    double seconds = 0, calls = 0, volume = 0;
    bool knows_volume = true, knows_operation = true;
  };
  static Totals totals(const StepWork& side, const std::vector<size_t>& rows) {
    Totals sum;
    for (const size_t i : rows) {
      const WorkRow& row = side.rows[i];
      sum.seconds += row.mean_seconds(), sum.calls += row.calls, sum.volume += row.volume;
      sum.knows_volume &= row.volume > 0, sum.knows_operation &= row.has_operation;
    }
    return sum;
  }

  // Work of the same key on both sides.
  void pair_same(const WorkKey& key, const Rows& rows) {
    if (rows.a.empty() || rows.b.empty()) return;
    const Totals a = totals(a_, rows.a), b = totals(b_, rows.b);
    if (a.seconds > 0 && b.seconds > 0 && a.calls > 0 && b.calls > 0)
      factors_.push_back({std::log((b.seconds / b.calls) / (a.seconds / a.calls)), a.seconds + b.seconds});
    const double ratio = a.calls > 0 && b.calls > 0 ? b.calls / a.calls : 1.0;
    // Calls of unknown shapes may be of any size, where others have shapes.
    const bool counts = a.knows_operation && b.knows_operation && key.kernel_class != KernelClass::collective &&
                        (!known_.shapes || !key.shapes.empty());
    if (is_cut_otherwise(key, ratio)) return take(key, rows, Cause::micro_batches, Cause::micro_batches);
    if (!counts || is_near(ratio, 1.0, k_same_count)) return take(key, rows, cause_of(key.kernel_class), Cause::launch);
    split(key, rows, more(ratio), more(ratio), more_calls(key));
  }

  // The same operation with other shapes.
  void pair_operation(const WorkKey& key, const Rows& rows) {
    if (rows.a.empty() || rows.b.empty()) return;
    const Totals a = totals(a_, rows.a), b = totals(b_, rows.b);
    if (match_.micro_batches && key.phase != Phase::optimizer)
      return take(key, rows, Cause::micro_batches, Cause::micro_batches);
    if (key.kernel_class == KernelClass::collective) return take(key, rows, Cause::communication, Cause::launch);
    const double ratio = a.knows_volume && b.knows_volume ? b.volume / a.volume : 1.0;
    if (is_near(ratio, 1.0, k_same_volume)) return take(key, rows, cause_of(key.kernel_class), Cause::launch);
    split(key, rows, more(ratio), more(b.calls / a.calls), Cause::work);
  }

  // What only one side does, or does by another operation.
  void pair_class(const WorkKey& key, const Rows& rows) {
    const bool both = !rows.a.empty() && !rows.b.empty();
    const bool whole = is_product(key.kernel_class) || key.kernel_class == KernelClass::collective ||
                       key.kernel_class == KernelClass::other || !known_.operations;
    // Kernels of no known class are no counterparts of each other.
    if (both && whole && key.kernel_class != KernelClass::other)
      return take(key, rows, cause_of(key.kernel_class), Cause::launch);
    const auto take_alone = [&](const WorkKey& own, const Rows& row, const StepWork& other) {
      if (both && whole) return take(own, row, cause_of(own.kernel_class), Cause::launch);
      take(own, row, lone_cause(own), lone_gap_cause(own, other));
    };
    for (const size_t i : rows.a) take_alone(a_.rows[i].key, {{i}, {}}, b_);
    for (const size_t i : rows.b) take_alone(b_.rows[i].key, {{}, {i}}, a_);
  }

  Cause lone_cause(const WorkKey& key) const {
    if (key.kernel_class == KernelClass::collective) return Cause::communication;
    if (key.phase == Phase::recompute) return Cause::work;
    if (match_.micro_batches && key.phase != Phase::optimizer) return Cause::micro_batches;
    if (is_product(key.kernel_class)) return same_work_ ? Cause::one_sided : Cause::work;
    // Of the processor every operation has its own name.
    return key.kernel_class == KernelClass::other && b_.on_gpu ? Cause::unknown_kernels : Cause::one_sided;
  }
  // A copy engine's work is launched within an operation that computes: where both sides call it, the host does no
  // more. A recomputed operation is a further call.
  Cause lone_gap_cause(const WorkKey& key, const StepWork& other) const {
    const bool is_called = std::ranges::any_of(other.rows, [&](const WorkRow& row) {
      return row.has_operation && row.key.operation == key.operation &&
             (row.key.shapes == key.shapes || key.kernel_class == KernelClass::copy);
    });
    if (is_called && key.phase != Phase::recompute) return Cause::launch;
    const Cause cause = lone_cause(key);
    return cause == Cause::unknown_kernels || cause == Cause::communication ? Cause::launch : cause;
  }

  // More calls of the same operation are more work, unless the products are the same: then one side does something that
  // the other leaves out.
  Cause more_calls(const WorkKey& key) const {
    return same_work_ && !is_product(key.kernel_class) && key.phase != Phase::recompute ? Cause::one_sided
                                                                                        : Cause::work;
  }

  bool is_cut_otherwise(const WorkKey& key, double ratio) const {
    return match_.micro_batches && key.phase != Phase::optimizer && is_near(ratio, *match_.micro_batches, k_same_ratio);
  }

  // Of the part that more calls or more work make up; the rest is 1 less it.
  static ShareFactors more(double ratio) {
    const double a = 1.0 - ratio, b = 1.0 - 1.0 / ratio;
    return {a / 2.0, b / 2.0, std::max(0.0, a), std::max(0.0, b)};
  }
  static ShareFactors rest(const ShareFactors& part) {
    return {1.0 - part.a, 1.0 - part.b, 1.0 - part.a_part, 1.0 - part.b_part};
  }
  static constexpr ShareFactors k_whole = {1, 1, 1, 1};

  void take(const WorkKey& key, const Rows& rows, Cause cause, Cause gap_cause) {
    share({cause, k_no_row, k_no_row, k_whole, gap_cause, k_whole, name_of(key, rows)}, rows);
  }

  // Gaps go with the calls, work with the volume.
  void split(const WorkKey& key, const Rows& rows, const ShareFactors& part, const ShareFactors& gap_part,
             Cause more_cause) {
    const std::string name = name_of(key, rows);
    share({more_cause, k_no_row, k_no_row, part, more_cause, gap_part, name}, rows);
    share({cause_of(key.kernel_class), k_no_row, k_no_row, rest(part), Cause::launch, rest(gap_part), name}, rows);
  }

  // Rows of one group need not be the same work: only one of each side, or one alone, has a name of its own.
  static std::string name_of(const WorkKey& key, const Rows& rows) {
    return rows.a.size() <= 1 && rows.b.size() <= 1 ? "" : describe_key(key);
  }

  void share(WorkShare each, const Rows& rows) {
    for (size_t i = 0; i < std::max(rows.a.size(), rows.b.size()); ++i) {
      each.a_row = each.b_row = k_no_row;
      if (i < rows.a.size()) each.a_row = rows.a[i], taken_a_[rows.a[i]] = true;
      if (i < rows.b.size()) each.b_row = rows.b[i], taken_b_[rows.b[i]] = true;
      match_.shares.push_back(each);
    }
  }

  bool has_same_products() const {
    const auto products = [](const StepWork& side) {
      std::vector<size_t> rows;
      for (size_t i = 0; i < side.rows.size(); ++i)
        if (is_product(side.rows[i].key.kernel_class) && side.rows[i].key.phase != Phase::recompute) rows.push_back(i);
      return totals(side, rows);
    };
    const Totals a = products(a_), b = products(b_);
    if (a.volume > 0 && b.volume > 0) return is_near(b.volume / a.volume, 1.0, k_same_volume);
    return a.calls <= 0 || is_near(b.calls / a.calls, 1.0, k_same_count);
  }

  // Products of other shapes but the same volume, in k times as many calls.
  std::optional<double> find_micro_batches() {
    if (!known_.shapes) return std::nullopt;
    std::map<WorkKey, std::pair<Totals, Totals>> groups;
    const auto add = [&](const StepWork& side, bool is_b) {
      for (size_t i = 0; i < side.rows.size(); ++i) {
        if (!is_product(side.rows[i].key.kernel_class)) continue;
        auto& pair = groups[reduced(side.rows[i].key, false)];
        Totals& sum = is_b ? pair.second : pair.first;
        const Totals one = totals(side, {i});
        sum.seconds += one.seconds, sum.calls += one.calls, sum.volume += one.volume;
      }
    };
    add(a_, false), add(b_, true);
    double all = 0, log_sum = 0, found = 0;
    for (const auto& [key, pair] : groups) {
      const auto& [a, b] = pair;
      const double seconds = a.seconds + b.seconds;
      all += seconds;
      if (a.volume <= 0 || b.volume <= 0 || !is_near(b.volume / a.volume, 1.0, k_same_volume)) continue;
      const double ratio = b.calls / a.calls;
      if (is_near(ratio, 1.0, 0.4)) continue;
      found += seconds, log_sum += seconds * std::log(ratio);
    }
    return found > 0.5 * all ? std::optional(std::exp(log_sum / found)) : std::nullopt;
  }

  // Half of the time of matched calls changes by nearly the same factor.
  std::optional<double> find_uniform_factor() {
    std::ranges::sort(factors_);
    double all = 0, sum = 0;
    for (const auto& [factor, seconds] : factors_) all += seconds;
    std::array<double, 3> quartiles = {};
    size_t next = 0;
    for (const auto& [factor, seconds] : factors_) {
      sum += seconds;
      while (next < quartiles.size() && sum >= 0.25 * static_cast<double>(next + 1) * all) quartiles[next++] = factor;
    }
    const double middle = quartiles[1];
    const bool is_alike = quartiles[2] - quartiles[0] <= std::max(0.02, std::abs(middle));
    return factors_.size() >= k_fewest_factors && is_alike ? std::optional(std::exp(middle)) : std::nullopt;
  }

  const StepWork &a_, &b_;
  std::vector<std::pair<double, double>> factors_;  // log of B's time of a call over A's, seconds of both
  Known known_;
  std::vector<char> taken_a_, taken_b_;
  bool same_work_ = true;
  WorkMatch match_;
};

}  // namespace

Cause cause_of(KernelClass kernel_class) {
  switch (kernel_class) {
    case KernelClass::matmul:
    case KernelClass::convolution: return Cause::products;
    case KernelClass::attention: return Cause::attention;
    case KernelClass::collective: return Cause::communication;
    case KernelClass::other: return Cause::unknown_kernels;
    default: return Cause::memory_bound;
  }
}

WorkMatch match_work(const StepWork& a, const StepWork& b, std::optional<double> micro_batches) {
  return Matcher(a, b, micro_batches).match();
}

}  // namespace tprimat::results
