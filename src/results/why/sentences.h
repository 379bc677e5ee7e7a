#pragma once

#include "why/ledger.h"
#include "why/match_work.h"
#include "why/side.h"

namespace tprimat::results {

// Whether a term is a finding: beyond its interval, and large enough to matter.
bool is_finding(const Ledger& ledger, const LedgerTerm& term);

// Sentences and remedies of the terms that are findings, and the three largest as Ledger::findings.
void write_sentences(Ledger& ledger, const Side& a, const Side& b, const WorkMatch& match);

}  // namespace tprimat::results
