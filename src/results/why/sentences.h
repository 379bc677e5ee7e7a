#pragma once

#include <map>
#include <string>
#include <string_view>

#include "why/ledger.h"
#include "why/match_work.h"
#include "why/side.h"

namespace tprimat::results {

// How the note of a ledger without a finding begins.
inline constexpr std::string_view k_no_cause = "no cause is named";

// What a term is called in tables, charts and sentences: "matrix products".
std::string_view cause_title(Cause cause);

// The name of idle time whose reason is not recorded.
inline constexpr std::string_view k_bare_idle = "idle for a reason that the trace lacks";

// How large a term must be to be a finding.
struct FindingBounds {
  double share_of_step = 0.01;    // of the shorter step; two equal runs on processors differ by more than on GPUs
  double stalls = 0;              // s, B - A, in which other programs ran: no finding
  std::optional<double> uniform;  // everything takes this times as long in B: only what goes beyond is a finding
};

// Whether a term is a finding: beyond its interval, and large enough to matter.
bool is_finding(const Ledger& ledger, const LedgerTerm& term, const FindingBounds& bounds = {});

// Sentences and remedies of the terms that are findings, and the three largest as Ledger::findings. `more`: what else
// is known of a cause, after its sentence.
void write_sentences(Ledger& ledger, const std::map<Cause, std::string>& more = {}, const FindingBounds& bounds = {});

// Of two sides: how the micro-batches differ, which rank is late.
std::map<Cause, std::string> further_facts(const Ledger& ledger, const Side& a, const Side& b, const WorkMatch& match,
                                           const std::string& settings);

}  // namespace tprimat::results
