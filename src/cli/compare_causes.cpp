#include "cli/compare_causes.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cli/why_sides.h"
#include "report/figures.h"
#include "report/why_report.h"
#include "text/format.h"
#include "why/sentences.h"

namespace tprimat::cli {
namespace {

constexpr size_t k_max_pairs = 10, k_max_terms = 3;  // a ledger reads two traces

const results::LoadedRun* find_profiled(const results::Contender& contender) {
  for (const results::LoadedRun& run : contender.runs)
    if (run.result.profile && !run.result.profile->files.empty()) return &run;
  return nullptr;
}

// "B / A, why: matrix products +4.09 ms, launch gaps -0.6 ms of +5.59 ms per step; Not resolved: ..."
std::string state_terms(const std::string& pair, const results::Ledger& ledger, const results::PairCauses& causes) {
  std::vector<std::string> parts;
  for (const results::PairCause& term : causes.terms)
    parts.push_back(fmt::format("{} {:+.3g} ms", term.title, term.seconds * 1e3));
  if (parts.empty()) return fmt::format("{}, why: no cause is named.", pair);
  return fmt::format("{}, why: {} of {:+.3g} ms per step.{}", pair, join(parts, ", "), ledger.gap_seconds * 1e3,
                     ledger.resolved ? "" : " " + results::describe_remainder(ledger));
}

results::PairCauses find_causes(const std::string& pair, const results::LoadedRun& reference,
                                const results::LoadedRun& subject) {
  const auto a = load_profiled(reference.path, reference.result), b = load_profiled(subject.path, subject.result);
  if (!a || !b)
    return {.sentence = fmt::format("{}, why: the profile of {} is gone.", pair, a ? subject.path : reference.path)};
  const results::Ledger ledger = results::make_ledger(*a, *b);
  results::PairCauses causes{.gap_seconds = ledger.gap_seconds, .resolved = ledger.resolved};
  for (const results::LedgerTerm* term : results::largest_terms(ledger, k_max_terms))
    causes.terms.push_back({std::string(enum_name(term->cause)), std::string(results::cause_title(term->cause)),
                            term->seconds, term->sentence});
  causes.sentence = state_terms(pair, ledger, causes);
  return causes;
}

}  // namespace

void name_causes(results::Comparison& comparison) {
  size_t done = 0;
  for (results::ModelGroup& group : comparison.groups)
    for (results::Pair& pair : group.pairs) {
      const results::LoadedRun* reference = find_profiled(group.contenders[pair.reference]);
      const results::LoadedRun* subject = find_profiled(group.contenders[pair.subject]);
      if (reference == nullptr || subject == nullptr || done++ >= k_max_pairs) continue;
      const std::string name = results::pair_name(group, pair);
      try {
        pair.causes = find_causes(name, *reference, *subject);
      } catch (const Error& error) {
        const Problem& problem = error.problems().front();
        pair.causes = {.sentence = fmt::format("{}, why: {}: {}.", name, problem.where, problem.what)};
      }
    }
}

}  // namespace tprimat::cli
