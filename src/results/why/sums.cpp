#include "why/sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "text/enum_names.h"

namespace tprimat::results {
namespace {

constexpr size_t k_max_details = 20;
constexpr double k_unresolved = 0.05;  // of the gap

constexpr std::pair<Cause, std::array<std::string_view, 2>> k_sentences[] = {
    {Cause::products, {"Matrix products", "measure the same shapes alone with tprimat probe"}},
    {Cause::attention, {"Attention", "check which attention kernel runs"}},
    {Cause::memory_bound, {"Memory-bound kernels and copies", "look for lost fusions and for layout copies"}},
    {Cause::communication,
     {"Exposed communication", "compare the collectives of each size, their channels and threads, and the network"}},
    {Cause::waiting, {"Waiting of the pipeline", "see what stragglers cost: tprimat why FOLDER, one at a time"}},
    {Cause::work, {"Computations of the mean worker", "compare the layers and micro-batches of the stages"}},
    {Cause::launch, {"Idle time of the GPU", "record a trace: it shows what the host did meanwhile"}}};

}  // namespace

void SumDetails::add(const std::string& what, double seconds, std::optional<double> calls, bool is_b) {
  LedgerDetail& detail = parts_.try_emplace(what, LedgerDetail{.what = what}).first->second;
  std::optional<double>& total = is_b ? detail.b_seconds : detail.a_seconds;
  std::optional<double>& count = is_b ? detail.b_calls : detail.a_calls;
  total = total.value_or(0) + seconds;
  if (calls) count = count.value_or(0) + *calls;
  detail.seconds += is_b ? seconds : -seconds;
}

std::vector<LedgerDetail> SumDetails::take() const {
  std::vector<LedgerDetail> list;
  for (const auto& [what, detail] : parts_) list.push_back(detail);
  std::ranges::stable_sort(list, {}, [](const LedgerDetail& each) { return -std::fabs(each.seconds); });
  if (list.size() > k_max_details) list.resize(k_max_details);
  return list;
}

LedgerSide describe_sums(const std::string& label, const std::vector<std::string>& files, double seconds) {
  LedgerSide side;
  side.label = label, side.files = files, side.steps = 1, side.step_seconds = seconds;
  return side;
}

void add_sum_terms(Ledger& ledger, const std::map<Cause, double>& a, const std::map<Cause, double>& b) {
  const auto seconds_of = [](const std::map<Cause, double>& parts, Cause cause) {
    const auto found = parts.find(cause);
    return found == parts.end() ? 0.0 : found->second;
  };
  double rest = ledger.gap_seconds;
  for (const auto& [cause, name] : EnumNames<Cause>::values) {
    LedgerTerm term;
    term.cause = cause, term.a_seconds = seconds_of(a, cause), term.b_seconds = seconds_of(b, cause);
    term.seconds = cause == Cause::unexplained ? rest : term.b_seconds - term.a_seconds;
    rest -= term.seconds;
    ledger.terms.push_back(std::move(term));
  }
  const LedgerTerm& last = ledger.terms.back();
  ledger.resolved = std::fabs(last.seconds) <= k_unresolved * std::fabs(ledger.gap_seconds);
}

LedgerTerm& term_of(Ledger& ledger, Cause cause) { return *std::ranges::find(ledger.terms, cause, &LedgerTerm::cause); }

void write_sum_sentences(Ledger& ledger) {
  std::vector<const LedgerTerm*> told;
  for (const auto& [cause, texts] : k_sentences) {
    LedgerTerm& term = term_of(ledger, cause);
    if (std::fabs(term.seconds) <= k_unresolved * std::fabs(ledger.gap_seconds) || term.seconds == 0) continue;
    term.sentence = fmt::format("{}: {:+.1f} ms ({:.1f} to {:.1f} ms).", texts[0], term.seconds * 1e3,
                                term.a_seconds * 1e3, term.b_seconds * 1e3);
    if (!term.details.empty())
      term.sentence.insert(
          term.sentence.size() - 1,
          fmt::format("; most of it {}, {:+.1f} ms", term.details.front().what, term.details.front().seconds * 1e3));
    term.remedy = texts[1];
    told.push_back(&term);
  }
  std::ranges::stable_sort(told, {}, [](const LedgerTerm* term) { return -std::fabs(term->seconds); });
  for (const LedgerTerm* term : told) ledger.findings.push_back(term->sentence + " " + term->remedy);
  if (ledger.findings.size() > 3) ledger.findings.resize(3);
}

}  // namespace tprimat::results
