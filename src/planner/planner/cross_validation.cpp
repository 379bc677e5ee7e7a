#include "planner/cross_validation.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "planner/planned_rows.h"
#include "published/cells.h"
#include "spec/tsv_rows.h"

namespace tprimat::planner {
namespace {

struct FoldedRow {
  size_t table = 0;
  ReadRow row;
  size_t fold = 0;
};

std::string name_shape(const FoldedRow& each) {
  const ModelSpec& m = each.row.read.workload.shape;
  if (!each.row.is_described()) return fold_name(each.row.row->cell("model"));
  return fmt::format("{} {} {} {}", m.hidden_size, m.ffn_hidden_size, m.num_attention_heads,
                     m.experts ? m.experts->count : 0);
}

std::string name_group(const std::string& table, const FoldedRow& each, FoldsBy by) {
  const PublishedRow& row = *each.row.row;
  const PublishedWorkload& read = each.row.read;
  const std::string program = read.workload.family != nullptr ? read.workload.family->id : "";
  const auto kind = static_cast<int>(model_kind(read.workload));
  switch (by) {
    case FoldsBy::rows: return fmt::format("{}|{}", table, row.line);
    case FoldsBy::copies: break;
    case FoldsBy::sources: return name_source(table, row);
    case FoldsBy::models: return name_shape(each);
    case FoldsBy::gpus: return read.machine.id;
    case FoldsBy::programs: return fmt::format("{} {} {}", read.machine.id, program, kind);
    case FoldsBy::kinds: return fmt::format("{} {}", read.machine.architecture, kind);
    case FoldsBy::architectures: return read.machine.architecture;
  }
  return fmt::format("{}|{}|{}|{}|{}", table, row.cell("model"), row.cell("gpu"), row.cell("n_gpus"),
                     row.cell("precision"));
}

// The largest group first, each into the fold with fewest rows.
std::map<std::string, size_t> share_groups(const std::map<std::string, int64_t>& rows_of_groups, int64_t folds) {
  std::vector<std::pair<std::string, int64_t>> groups(rows_of_groups.begin(), rows_of_groups.end());
  std::ranges::stable_sort(groups, std::greater(), &std::pair<std::string, int64_t>::second);
  std::vector<int64_t> filled(static_cast<size_t>(folds));
  std::map<std::string, size_t> fold_of;
  for (const auto& [group, rows] : groups) {
    const auto fold = static_cast<size_t>(std::ranges::min_element(filled) - filled.begin());
    fold_of[group] = fold, filled[fold] += rows;
  }
  return fold_of;
}

void share_rows(std::vector<FoldedRow>& rows, const std::vector<PublishedTable>& tables, const Folding& folding) {
  std::vector<std::string> groups;
  std::map<std::string, int64_t> rows_of_groups;
  for (const FoldedRow& each : rows) {
    groups.push_back(name_group(tables[each.table].name, each, folding.by));
    rows_of_groups[groups.back()] += each.row.is_fitted() ? 1 : 0;
  }
  if (folding.by == FoldsBy::rows || folding.by == FoldsBy::copies) {
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i].fold = XXH64(groups[i].data(), groups[i].size(), 0) % static_cast<uint64_t>(folding.folds);
    return;
  }
  const auto fold_of = share_groups(rows_of_groups, folding.folds);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].fold = fold_of.at(groups[i]);
}

std::vector<FoldedRow> fold_rows(const std::vector<PublishedTable>& tables, const Folding& folding) {
  std::vector<FoldedRow> rows;
  for (size_t table = 0; table < tables.size(); ++table)
    for (ReadRow& row : read_rows(tables[table])) rows.push_back({table, std::move(row), 0});
  share_rows(rows, tables, folding);
  return rows;
}

// Work on all cores; each index once.
template <class Work>
void work_in_parallel(size_t count, const Work& work) {
  std::atomic<size_t> next = 0;
  std::vector<std::jthread> workers;
  const size_t threads = std::min<size_t>(count, std::max(1U, std::thread::hardware_concurrency()));
  for (size_t i = 0; i < threads; ++i)
    workers.emplace_back([&] {
      for (size_t index = next++; index < count; index = next++) work(index);
    });
}

// Of fits by several threads.
class FitCount {
 public:
  FitCount(int64_t all, const TellFits& tell) : all_(static_cast<size_t>(all)), tell_(tell) { report(); }

  void add() {
    const std::lock_guard lock(mutex_);
    ++done_;
    report();
  }

 private:
  void report() const {
    if (tell_) tell_(done_, all_);
  }

  size_t done_ = 0, all_;
  const TellFits& tell_;
  std::mutex mutex_;
};

struct Fold {
  std::vector<Observation> observations;
  std::vector<const ReadRow*> measured;
  ParameterSet fitted;
};

std::vector<Fold> fit_folds(const std::vector<FoldedRow>& rows, const ParameterSet& parameters, int64_t count,
                            FitCount& fits) {
  ParameterSet priors = parameters;
  priors.reset();
  std::vector<Fold> folds(static_cast<size_t>(count), Fold{{}, {}, priors});
  for (size_t fold = 0; fold < folds.size(); ++fold)
    for (const FoldedRow& each : rows) {
      if (each.fold == fold) continue;
      if (each.row.is_fitted()) folds[fold].observations.push_back(each.row.observation());
      folds[fold].measured.push_back(&each.row);
    }
  work_in_parallel(folds.size(), [&](size_t fold) {
    folds[fold].fitted = calibrate(priors, folds[fold].observations);
    fits.add();
  });
  return folds;
}

// A row's prediction by the fit to the other folds, and how near those are.
struct KeptOut {
  PlannedRow planned;
  BandKey place;
};

std::optional<KeptOutRow> error_of(const KeptOut& kept) {
  if (!kept.planned.error || kept.planned.weak) return std::nullopt;
  return KeptOutRow{kept.place, 1 / (1 + *kept.planned.error)};
}

std::vector<KeptOut> predict_kept_out(const std::vector<FoldedRow>& rows, const std::vector<Fold>& folds) {
  std::vector<IntervalTable> others(folds.size());
  for (size_t fold = 0; fold < folds.size(); ++fold) others[fold].measured = count_measured(folds[fold].measured);
  std::vector<KeptOut> kept;
  for (const FoldedRow& each : rows) {
    KeptOut& one = kept.emplace_back();
    one.planned = plan_row(each.row, folds[each.fold].fitted);
    if (one.planned.error) one.place = others[each.fold].place_of(each.row.read.workload, each.row.read.machine);
  }
  return kept;
}

// Those of a fold are drawn from the errors of the others.
void set_intervals(std::vector<KeptOut>& kept, const std::vector<FoldedRow>& rows, const std::vector<Fold>& folds) {
  for (size_t fold = 0; fold < folds.size(); ++fold) {
    std::vector<KeptOutRow> errors;
    for (size_t i = 0; i < rows.size(); ++i)
      if (const auto error = error_of(kept[i]); error && rows[i].fold != fold) errors.push_back(*error);
    const IntervalTable intervals = make_intervals(count_measured(folds[fold].measured), errors);
    for (size_t i = 0; i < rows.size(); ++i)
      if (rows[i].fold == fold && kept[i].planned.error)
        set_interval(kept[i].planned, intervals.interval_of(rows[i].row.read.workload, rows[i].row.read.machine));
  }
}

}  // namespace

std::string name_source(const std::string& table, const PublishedRow& row) {
  const std::vector<std::string> words = split_words(row.cell("source"), ' ');
  if (words.empty()) return table;
  std::string name = words[0];
  if (name == "arXiv" && words.size() > 1) return fmt::format("arXiv {}", words[1].substr(0, 10));
  if (const size_t release = name.rfind("_v"); release != std::string::npos) name.resize(release);
  return name.substr(0, name.find('@'));
}

std::vector<PlannedTable> cross_validate(const std::vector<PublishedTable>& tables, const ParameterSet& parameters,
                                         const Folding& folding, const TellFits& tell) {
  const std::vector<FoldedRow> rows = fold_rows(tables, folding);
  FitCount fits(folding.folds, tell);
  const std::vector<Fold> folds = fit_folds(rows, parameters, folding.folds, fits);
  std::vector<KeptOut> kept = predict_kept_out(rows, folds);
  set_intervals(kept, rows, folds);
  std::vector<std::vector<PlannedRow>> planned(tables.size());
  for (size_t i = 0; i < rows.size(); ++i) planned[rows[i].table].push_back(std::move(kept[i].planned));
  std::vector<PlannedTable> all;
  for (size_t table = 0; table < tables.size(); ++table)
    all.push_back(gather_planned(tables[table].name, std::move(planned[table])));
  return all;
}

IntervalTable fit_intervals(const std::vector<PublishedTable>& tables, const ParameterSet& parameters,
                            const TellFits& tell) {
  constexpr int64_t k_folds = 10;
  constexpr FoldsBy k_kinds[] = {FoldsBy::copies, FoldsBy::models, FoldsBy::programs, FoldsBy::kinds,
                                 FoldsBy::architectures};
  FitCount fits(k_folds * std::ssize(k_kinds), tell);
  std::vector<KeptOutRow> errors;
  std::vector<MeasuredGroup> measured;
  for (const FoldsBy by : k_kinds) {
    const std::vector<FoldedRow> rows = fold_rows(tables, {k_folds, by});
    const std::vector<Fold> folds = fit_folds(rows, parameters, k_folds, fits);
    const std::vector<KeptOut> kept = predict_kept_out(rows, folds);
    for (size_t i = 0; i < rows.size(); ++i)
      if (const auto error = error_of(kept[i])) errors.push_back(*error);
    if (!measured.empty()) continue;
    std::vector<const ReadRow*> all;
    for (const FoldedRow& each : rows) all.push_back(&each.row);
    measured = count_measured(all);
  }
  return make_intervals(std::move(measured), errors);
}

}  // namespace tprimat::planner
