#pragma once

#include <map>
#include <string>

#include "why/ledger.h"
#include "why/match_work.h"
#include "why/side.h"

namespace tprimat::results {

// Whether a term is a finding: beyond its interval, and large enough to matter. Of processors on which everything takes
// `uniform` times as long in B, beyond that too.
bool is_finding(const Ledger& ledger, const LedgerTerm& term, std::optional<double> uniform = std::nullopt);

// Sentences and remedies of the terms that are findings, and the three largest as Ledger::findings. `more`: what else
// is known of a cause, after its sentence.
void write_sentences(Ledger& ledger, const std::map<Cause, std::string>& more = {},
                     std::optional<double> uniform = std::nullopt);

// Of two sides: how the micro-batches differ, which rank is late.
std::map<Cause, std::string> further_facts(const Ledger& ledger, const Side& a, const Side& b, const WorkMatch& match,
                                           const std::string& settings);

}  // namespace tprimat::results
