#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "why/ledger.h"

// Parts of ledgers that rest on sums alone, without the times of single events.
namespace tprimat::results {

// What both sides have, by name.
class SumDetails {
 public:
  void add(const std::string& what, double seconds, std::optional<double> calls, bool is_b);
  std::vector<LedgerDetail> take() const;  // the longest change first, at most twenty

 private:
  std::map<std::string, LedgerDetail> parts_;
};

LedgerSide describe_sums(const std::string& label, const std::vector<std::string>& files, double seconds);

// One term for each cause, from both sides' seconds; what is left of the gap is not explained.
void add_sum_terms(Ledger& ledger, const std::map<Cause, double>& a, const std::map<Cause, double>& b);

LedgerTerm& term_of(Ledger& ledger, Cause cause);

// Of the terms of at least a twentieth of the gap, with remedies.
void write_sum_sentences(Ledger& ledger);

}  // namespace tprimat::results
