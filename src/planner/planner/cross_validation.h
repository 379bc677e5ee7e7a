#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan_validation.h"

namespace tprimat::planner {

// What a fold leaves out whole.
enum class FoldsBy {
  rows,     // each by itself
  copies,   // near copies: rows of one table, model, GPU, number of GPUs and precision
  sources,  // a repository, a paper, else the table
  models,   // shapes, whatever their number of layers
  gpus,
  programs,      // one program on one GPU with one kind of model
  kinds,         // a kind of model on an architecture
  architectures  // of GPUs
};
constexpr auto enum_table(FoldsBy) {
  return std::to_array<std::pair<FoldsBy, std::string_view>>({{FoldsBy::rows, "rows"},
                                                              {FoldsBy::copies, "copies"},
                                                              {FoldsBy::sources, "sources"},
                                                              {FoldsBy::models, "models"},
                                                              {FoldsBy::gpus, "gpus"},
                                                              {FoldsBy::programs, "programs"},
                                                              {FoldsBy::kinds, "kinds"},
                                                              {FoldsBy::architectures, "architectures"}});
}

struct Folding {
  int64_t folds = 10;
  FoldsBy by = FoldsBy::rows;
};

// Told before the first fit and after each, by one thread at a time.
using TellFits = std::function<void(size_t done, size_t all)>;

// Every row predicted by parameters that were fitted, from the priors of `parameters`, without its fold: the error that
// rows which nobody has seen can be expected to have. Its interval follows from the errors of the other folds.
std::vector<PlannedTable> cross_validate(const std::vector<PublishedTable>& tables, const ParameterSet& parameters,
                                         const Folding& folding, const TellFits& tell = {});

// From the errors of all kinds of folds, ten each.
IntervalTable fit_intervals(const std::vector<PublishedTable>& tables, const ParameterSet& parameters,
                            const TellFits& tell = {});

// "owner/name" of a repository, "arXiv 2104.04473" of a paper: the `source` cell without path, commit, table and
// release. The table's name where the cell is empty.
std::string name_source(const std::string& table, const PublishedRow& row);

}  // namespace tprimat::planner
