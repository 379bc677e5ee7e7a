#include "extract/stated_facts.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "extract/common/setting_names.h"
#include "extract/model_shape.h"
#include "extract/work_settings.h"

namespace tprimat::logs {
namespace {

using F = LoggedFacts;

template <class T>
bool same_value(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, double>)
    return std::abs(a - b) <= 1e-9 * std::abs(a);
  else
    return a == b;
}

template <class T>
std::string show_value(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return std::string(enum_name(value));
  else
    return fmt::format("{}", value);
}

template <class T>
constexpr bool is_member(T LoggedFacts::*member, std::initializer_list<T LoggedFacts::*> list) {
  for (const auto each : list)
    if (each == member) return true;
  return false;
}

// Not decisive: the length of the training, and rounded or assumed figures of the machine.
constexpr bool decides(std::optional<int64_t> F::*member) {
  return !is_member(member, {&F::max_steps, &F::warmup_steps});
}
constexpr bool decides(std::optional<double> F::*member) {
  return !is_member(member, {&F::gpu_memory_gb, &F::peak_flops});
}
template <class T>
constexpr bool decides(T F::*) {
  return true;
}

template <class T>
void add_difference(std::string_view name, const std::optional<T>& a, const std::optional<T>& b,
                    std::vector<std::string>& differences) {
  if (a && b && !same_value(*a, *b))
    differences.push_back(fmt::format("{} {} and {}", name, show_value(*a), show_value(*b)));
}

}  // namespace

StatedFacts gather_facts(const ExtractedLog& log, const ExtractedLog& common) {
  StatedFacts stated{log.facts, log.settings};
  stated.settings.insert(common.settings.begin(), common.settings.end());
  apply_settings(stated.settings, stated.facts);
  merge_facts(stated.facts, common.facts);
  return stated;
}

void merge_facts(LoggedFacts& facts, const LoggedFacts& other) {
  for_each_field<LoggedFacts>([&](const auto& fact) {
    if (!(facts.*fact.member)) facts.*fact.member = other.*fact.member;
  });
}

std::vector<std::string> differing_facts(const StatedFacts& a, const StatedFacts& b) {
  std::vector<std::string> differences;
  for_each_field<LoggedFacts>([&](const auto& fact) {
    if (decides(fact.member)) add_difference(fact.key, a.facts.*fact.member, b.facts.*fact.member, differences);
  });
  const LoggedShape one = read_logged_shape(a.settings), other = read_logged_shape(b.settings);
  for_each_field<LoggedShape>(
      [&](const auto& size) { add_difference(size.key, one.*size.member, other.*size.member, differences); });
  // A start that repeats what the run before was told states all of its settings.
  if (differences.empty() && repeats_facts(a, b)) return differing_work_settings(a.settings, b.settings);
  return differences;
}

bool states_decisive_fact(const LoggedFacts& facts) {
  bool any = false;
  for_each_field<LoggedFacts>([&](const auto& fact) { any |= decides(fact.member) && facts.*fact.member; });
  return any;
}

bool repeats_facts(const StatedFacts& before, const StatedFacts& again) {
  constexpr int k_min_repeated = 3;
  int repeated = 0;
  for_each_field<LoggedFacts>([&](const auto& fact) {
    const auto &was = before.facts.*fact.member, &is = again.facts.*fact.member;
    repeated += was && is && same_value(*was, *is) ? 1 : 0;
  });
  return repeated >= k_min_repeated;
}

}  // namespace tprimat::logs
