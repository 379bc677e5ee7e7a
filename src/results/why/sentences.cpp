#include "why/sentences.h"

#include <algorithm>
#include <cmath>

#include "text/format.h"

namespace tprimat::results {
namespace {

constexpr size_t k_max_findings = 3;
constexpr double k_share_of_gap = 0.10;  // a smaller term is no finding

int decimals_of(double seconds) { return std::abs(seconds) < 1e-3 ? 3 : std::abs(seconds) < 0.1 ? 1 : 0; }
std::string milliseconds(double seconds) { return fmt::format("{:.{}f} ms", seconds * 1e3, decimals_of(seconds)); }
std::string signed_milliseconds(double seconds) {
  return fmt::format("{:+.{}f} ms", seconds * 1e3, decimals_of(seconds));
}

// After the title of a term whose name alone does not tell what it is.
std::string_view gloss_of(Cause cause) {
  switch (cause) {
    case Cause::work: return " (a different amount of work)";
    case Cause::micro_batches: return " (the same work in other micro-batches)";
    case Cause::memory_bound: return " operations";
    case Cause::communication: return " (exposed)";
    case Cause::waiting: return " for another rank";
    case Cause::data: return " (the device is idle, the host waits for input)";
    case Cause::synchronisation: return " (the device is idle, the host waits for it)";
    case Cause::launch: return " (the device is idle, the host launches late)";
    case Cause::one_sided: return " operations (only one side runs them)";
    case Cause::outliers: return " (single slow steps, stalls)";
    default: return "";
  }
}

std::string_view remedy_of(Cause cause, bool b_is_slower) {
  if (!b_is_slower) return "";
  switch (cause) {
    case Cause::work: return "compare recomputation, batch size, sequence length and padding of both runs";
    case Cause::micro_batches: return "raise the micro-batch size as far as memory allows";
    case Cause::products:
      return "compare the kernels and the library versions for these shapes, and measure the shapes alone with "
             "tprimat probe";
    case Cause::attention: return "compare the attention backends of both runs";
    case Cause::memory_bound: return "compare memory bandwidth and fusion (torch.compile, fused optimizer)";
    case Cause::communication:
      return "compare the network and the settings of NCCL or RCCL, and check what overlaps with computation";
    case Cause::waiting: return "check the late rank: its CPU, its clocks, its share of the work";
    case Cause::data: return "use more data loader workers or more prefetching, or store the data pre-processed";
    case Cause::synchronisation:
      return "remove .item(), printed tensors, synchronize() and allocations from the step, and use pinned memory";
    case Cause::launch:
      return "launch fewer kernels (CUDA graphs, torch.compile, fused optimizer), or free the host's CPU";
    case Cause::clocks: return "check the power cap, cooling and clock settings with tprimat doctor";
    case Cause::one_sided: return "compare the fusions and memory layouts of both runs";
    case Cause::outliers: return "check the slow steps for checkpoints, evaluation and other programs";
    case Cause::unknown_kernels: return "look up these kernels by name";
    case Cause::unexplained: return "";
  }
  return "";
}

// A whole number, or with one decimal.
std::string calls_per_step(double calls) {
  return format_fixed(calls, std::abs(calls - std::round(calls)) < 0.05 ? 0 : 1);
}

std::string calls_text(const LedgerDetail& detail) {
  if (!detail.a_calls && !detail.b_calls) return "";
  const double a = detail.a_calls.value_or(0), b = detail.b_calls.value_or(0);
  if (a == b) return fmt::format(", {} call{}", calls_per_step(a), a == 1 ? "" : "s");
  return fmt::format(", {} and {} calls", calls_per_step(a), calls_per_step(b));
}

// "mostly aten::mm [1024,1024] [1024,4096]: 12.1 and 18.3 ms, 24 calls"
std::string detail_text(const LedgerDetail& detail) {
  if (detail.a_seconds && detail.b_seconds)
    return fmt::format("{}: {} in A, {} in B{}", detail.what, milliseconds(*detail.a_seconds),
                       milliseconds(*detail.b_seconds), calls_text(detail));
  if (detail.a_seconds || detail.b_seconds)
    return fmt::format("{}: {}, only in {}{}", detail.what,
                       milliseconds(detail.a_seconds ? *detail.a_seconds : *detail.b_seconds),
                       detail.a_seconds ? "A" : "B", calls_text(detail));
  return fmt::format("{}: {}", detail.what, signed_milliseconds(detail.seconds));
}

// The largest part that changes as the term does; others are smaller, or cancel it in part.
const LedgerDetail* main_part(const LedgerTerm& term) {
  const auto part =
      std::ranges::find_if(term.details, [&](const LedgerDetail& detail) { return detail.seconds * term.seconds > 0; });
  return part == term.details.end() ? nullptr : &*part;
}

// Idle time of which nothing else is recorded: no host is to blame.
bool is_bare_idle(const LedgerTerm& term) {
  const LedgerDetail* part = main_part(term);
  return term.cause == Cause::launch && part != nullptr && part->what.starts_with(k_bare_idle);
}

std::string sentence_of(const Ledger& ledger, const LedgerTerm& term) {
  const bool is_bare = is_bare_idle(term);
  std::string text = fmt::format("{}{}: {} per step", is_bare ? "idle device" : std::string(cause_title(term.cause)),
                                 is_bare ? "" : gloss_of(term.cause), signed_milliseconds(term.seconds));
  const double share = ledger.gap_seconds == 0 ? 0.0 : term.seconds / ledger.gap_seconds;
  if (share > 0 && share <= 1.5) text += fmt::format(" ({} of the gap)", format_percent(share, 0));
  if (const LedgerDetail* part = main_part(term)) text += "; mostly " + detail_text(*part);
  return text;
}

std::string late_rank_text(const Side& side) {
  if (!side.late) return "";
  std::string text = fmt::format("; rank {} is late by {}", side.late->index, milliseconds(side.late->seconds));
  if (!side.late->longer.empty())
    text += fmt::format(": {} takes {} longer than on the other ranks", side.late->longer.front().what,
                        milliseconds(side.late->longer.front().seconds));
  return text;
}

// What the term adds beyond other programs' stalls and a processor that is slower in everything.
double beyond_uniform(const LedgerTerm& term, const FindingBounds& bounds) {
  if (term.cause == Cause::outliers) return term.seconds - bounds.stalls;
  const std::optional<double>& uniform = bounds.uniform;
  const bool by_speed = term.cause == Cause::products || term.cause == Cause::attention ||
                        term.cause == Cause::memory_bound || term.cause == Cause::launch;
  return uniform && by_speed ? term.seconds - (*uniform - 1.0) * term.a_seconds : term.seconds;
}

bool is_noise(const std::optional<double>& low, const std::optional<double>& high) {
  return low && high && *low <= 0 && *high >= 0;
}

std::string say_no_cause(const Ledger& ledger, const FindingBounds& bounds) {
  const double step = std::min(ledger.a.step_seconds, ledger.b.step_seconds);
  const std::string because =
      is_noise(ledger.low, ledger.high) ? "the 95 % interval of the gap includes zero"
      : std::abs(ledger.gap_seconds) < bounds.share_of_step * step
          ? fmt::format("the gap is less than {} of the step", format_percent(bounds.share_of_step, 0))
          : fmt::format("no term is {} of the gap or more with an interval that excludes zero",
                        format_percent(k_share_of_gap, 0));
  return fmt::format("{}: {}", k_no_cause, because);
}

}  // namespace

std::string_view cause_title(Cause cause) {
  switch (cause) {
    case Cause::work: return "work";
    case Cause::micro_batches: return "micro-batches";
    case Cause::products: return "matrix products";
    case Cause::attention: return "attention";
    case Cause::memory_bound: return "memory-bound";
    case Cause::communication: return "communication";
    case Cause::waiting: return "waiting";
    case Cause::data: return "input data";
    case Cause::synchronisation: return "synchronisation";
    case Cause::launch: return "launch gaps";
    case Cause::clocks: return "clocks";
    case Cause::one_sided: return "one-sided";
    case Cause::outliers: return "outliers";
    case Cause::unknown_kernels: return "unknown kernels";
    case Cause::unexplained: return "unexplained";
  }
  return "";
}

bool is_finding(const Ledger& ledger, const LedgerTerm& term, const FindingBounds& bounds) {
  if (term.cause == Cause::unexplained || is_noise(ledger.low, ledger.high) || is_noise(term.low, term.high))
    return false;
  const double step = std::min(ledger.a.step_seconds, ledger.b.step_seconds),
               size = std::abs(beyond_uniform(term, bounds));
  return size >= bounds.share_of_step * step && size >= k_share_of_gap * std::abs(ledger.gap_seconds) &&
         std::abs(ledger.gap_seconds) >= bounds.share_of_step * step;
}

std::map<Cause, std::string> further_facts(const Ledger& ledger, const Side& a, const Side& b, const WorkMatch& match,
                                           const std::string& settings) {
  std::map<Cause, std::string> facts = {{Cause::work, settings}};
  if (match.micro_batches)
    facts[Cause::micro_batches] =
        fmt::format("; B has {} times as many micro-batches", format_significant(*match.micro_batches, 3));
  const bool b_waits = ledger.term(Cause::waiting).seconds > 0;
  facts[Cause::waiting] = late_rank_text(b_waits ? b : a);
  return facts;
}

void write_sentences(Ledger& ledger, const std::map<Cause, std::string>& more, const FindingBounds& bounds) {
  std::vector<const LedgerTerm*> found;
  for (LedgerTerm& term : ledger.terms) {
    if (!is_finding(ledger, term, bounds)) continue;
    term.sentence = sentence_of(ledger, term);
    if (const auto further = more.find(term.cause); further != more.end()) term.sentence += further->second;
    term.remedy = is_bare_idle(term)
                      ? term.seconds > 0 ? "record the host's operations too, which show what it waits for" : ""
                      : remedy_of(term.cause, term.seconds > 0);
    found.push_back(&term);
  }
  std::ranges::stable_sort(found, std::greater<>(), [](const LedgerTerm* term) { return std::abs(term->seconds); });
  for (size_t i = 0; i < std::min(found.size(), k_max_findings); ++i)
    ledger.findings.push_back(found[i]->remedy.empty() ? found[i]->sentence
                                                       : found[i]->sentence + "; " + found[i]->remedy);
  if (found.empty()) ledger.notes.push_back(say_no_cause(ledger, bounds));
}

}  // namespace tprimat::results
