#pragma once

#include <string>
#include <vector>

#include "report/document.h"
#include "text/format.h"
#include "why/ledger.h"

// The texts of a ledger, the same on the terminal and on the page.
namespace tprimat::results {

struct WhyRow {
  std::vector<std::string> cells;
  double seconds = 0;
  const LedgerTerm* term = nullptr;  // nothing: several other terms
};

struct WhyTables {
  std::vector<std::string> header, total, folded;  // folded: names of the other terms
  std::vector<WhyRow> rows;
  TextTable sides, classes;
  std::vector<Line> causes, notes;
  Line remainder;
};

// `all`: small terms keep lines of their own.
WhyTables tabulate_why(const Ledger& ledger, bool all);

// Of milliseconds, the same in all figures of a ledger.
int decimals_of(const Ledger& ledger);

// What a term consists of; longer names are cut.
TextTable tabulate_parts(const Ledger& ledger, const LedgerTerm& term, size_t name_width);

// "A  h100: 47.151 ms per step (95 % interval 46.800 to 47.500); NVIDIA H100, 4 recorded steps"
std::vector<Line> list_sides(const Ledger& ledger);

}  // namespace tprimat::results
