#pragma once

#include <optional>
#include <string>
#include <vector>

#include "claim/conventions.h"
#include "planner/machine.h"
#include "planner/published_workload.h"
#include "published/row_inputs.h"

namespace tprimat::planner {

// Facts of a training by which published results are near to it or far.
struct RunFacts {
  std::string model;  // as written
  ModelSpec shape;
  double parameters = 0, active_parameters = 0;
  Machine machine;
  PlanPrecision precision = PlanPrecision::bf16;
  bool precision_stated = true;
  int64_t sequence_length = 0, gpus = 0;  // 0: not stated
  int64_t global_batch = 0;               // sequences; 0: not stated
  std::string framework;                  // as written; may be empty
  const Family* family = nullptr;         // nullptr: not in the planner's list
  bool trains_adapters = false;
  bool fine_tunes = false;             // all weights; packed samples attend to less than is counted
  bool has_fewer_layers = false;       // a proxy, cut down from the model that it is named for
  std::optional<Routing> routing;      // of experts, where stated
  std::optional<Recompute> recompute;  // where stated

  bool is_sparse() const { return shape.is_sparse(); }
  CountedWork work() const { return {shape, sequence_length, trains_adapters}; }
  double peak() const { return machine.peak(precision); }  // dense, FLOP/s
  double mfu(double tokens_per_second_per_gpu) const;      // causal, over the dense peak
};

// What a row says of these; `missing` names the first that it lacks, or is empty.
struct ReadFacts {
  RunFacts facts;
  RowInputs inputs;
  PublishedWorkload planned;  // as the planner reads the row
  std::string missing;
};
ReadFacts read_facts(const PublishedRow& row, const std::optional<ModelSpec>& shape = {});

// Tokens/s per GPU that the row states outright: as such, of the whole job, or by step time.
std::optional<double> stated_rate(const PublishedRow& row, const RunFacts& facts);

// A published result with its rate.
struct PublishedRun {
  RunFacts facts;
  std::string id;      // of the row; in tables without ids, table and line
  std::string source;  // as the table states it
  std::string table;
  int64_t line = 0;
  double tokens_per_second_per_gpu = 0;
  double mfu = 0;
};

// Rows whose model, GPU and rate are known; of rows that are marked as contradictory, none.
std::vector<PublishedRun> read_published_runs(const std::vector<PublishedTable>& tables);
const std::vector<PublishedRun>& built_in_runs();  // of the tables that come with the program

// Repository and document without path details: rows of one source are near copies of each other.
std::string source_family(const std::string& source);

}  // namespace tprimat::planner
