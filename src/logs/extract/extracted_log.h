#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "extract/figure.h"
#include "result/kinds.h"
#include "result/time_to_train.h"
#include "result/training_settings.h"
#include "spec/experts.h"
#include "spec/model_spec.h"
#include "spec/names.h"
#include "text/fields.h"

namespace tprimat::logs {

// One optimizer update (or the mean of several) as logged. Figures are as reported, in the units given here; unstated
// ones are absent.
struct ExtractedStep {
  int64_t step = 0;     // as the log counts it
  int64_t line = 0;     // of the first line that reports it, from 1
  int32_t rank = -1;    // of that line; -1: no prefix
  int32_t mean_of = 1;  // steps that time and loss are means of (log interval)
  bool single = false;  // time and loss are of this step alone, though steps before it may not be reported
  int32_t reports = 1;  // lines merged into this record: other ranks, copies
  int16_t attempt = 0;  // 0 is the first; each restart begins the next
  TimeSource time_source = TimeSource::none;
  bool disputed = false;         // another record of it has another loss and time
  bool skipped = false;          // the update was left out (overflow)
  bool with_evaluation = false;  // its time holds an evaluation
  bool with_checkpoint = false;  // its time holds the saving of a checkpoint
  Figure time_seconds;           // of one step
  Figure unix_time;              // of the line, s since 1970, as if its clock were UTC
  Figure loss;                   // nats; NaN if the log prints NaN, or omits the loss to indicate it
  Figure learning_rate, grad_norm, loss_scale;
  Figure global_batch_size;  // sequences of this step
  Figure samples_seen;       // since the start of training
  Figure tflops_per_gpu;     // 1e12 FLOP/s, by the framework's own formula
  Figure skipped_updates;    // since the record before, where the log counts or marks them
  // Rarer figures stand together, so that most passes over the steps of a long log leave their memory alone.
  Figure tokens;       // of this step, all ranks
  Figure tokens_seen;  // since the start of training
  Figure mfu;          // fraction, against the framework's own peak
  Figure tokens_per_second, tokens_per_second_per_gpu, samples_per_second;
  Figure power_watts_per_gpu, energy_joules_per_gpu;
  Figure memory_allocated_gb, memory_reserved_gb, memory_used_gb;  // GB = 1e9 bytes; used: as the driver counts it
  Figure expert_load, dropped_share;                               // as in StepRecord
  Figure aux_loss, z_loss;     // of a mixture's router, as the log prints them: maybe without their coefficients
  Figure time_low, time_high;  // s; bounds of the true time, from the rounding of the printed one
};

// A figure of a step by its name in a log.
struct NamedFigure {
  std::string_view name;
  Figure ExtractedStep::*member;
  double factor = 1.0;  // to our unit
};

struct LogEvent {
  EventKind kind = EventKind::failed;
  int64_t line = 0;
  int32_t rank = -1;                // -1: not known
  int64_t step = -1;                // the one it names, else: finish_log.cpp, place_events; -1: none
  Figure seconds;                   // how long it took
  Figure value;                     // of an evaluation its loss, of skipped updates their number where not 1
  std::string text;                 // in words, from the log; one line, printable
  int32_t reports = 1;              // lines that report it, other ranks' included
  int64_t last_line = 0;            // of the last of those; 0: there is one only
  std::vector<int32_t> ranks = {};  // that report it, ascending, where known; at most a hundred
};

// Facts of the whole run, as far as the log states them.
struct LoggedFacts : TrainingSettings {
  std::optional<Platform> platform;
  std::optional<Framework> framework;
  std::optional<std::string> framework_version, model, gpu_name, pytorch_version, stack_version, dataset;
  std::optional<Precision> precision;
  std::optional<int64_t> gpu_count;             // all devices of the run
  std::optional<double> gpu_memory_gb;          // of one device, GB = 1e9 bytes
  std::optional<int64_t> parameters;            // of the whole model
  std::optional<int64_t> trainable_parameters;  // those not frozen, such as adapters; absent: all
  std::optional<int64_t> frozen_parameters;     // the others; both may count the part of one rank
  std::optional<int64_t> tensor_parallel, pipeline_parallel, data_parallel, context_parallel, accumulation_steps,
      virtual_pipeline, expert_parallel, expert_tensor_parallel, zero_stage;
  std::optional<bool> sequence_parallel;
  std::optional<Routing> routing;        // of a mixture of experts
  std::optional<Dispatcher> dispatcher;  // likewise
  std::optional<double> peak_flops;      // per device, as the framework assumes it, FLOP/s
  std::optional<ModelSpec> shape;        // as a result file holds it

  // Number of steps of the training, as records state it: an entry for each line where it changes.
  struct StatedTotal {
    int64_t line = 0, steps = 0;
  };
  std::vector<StatedTotal> totals;
  void state_total(std::optional<int64_t> steps, int64_t line) {
    constexpr size_t k_max_totals = 1000;
    if (steps && (totals.empty() || totals.back().steps != *steps) && totals.size() < k_max_totals)
      totals.push_back({line, *steps});
  }
  static constexpr auto fields() {
    using F = LoggedFacts;
    return field_list(
        field("platform", &F::platform, ""), field("framework", &F::framework, ""),
        field("framework version", &F::framework_version, ""), field("model", &F::model, ""),
        field("GPU", &F::gpu_name, ""), field("PyTorch version", &F::pytorch_version, ""),
        field("stack version", &F::stack_version, ""), field("optimizer", &F::optimizer, ""),
        field("schedule", &F::schedule, ""), field("dataset", &F::dataset, ""),
        field("recomputation", &F::recompute, ""), field("precision", &F::precision, ""),
        field("devices", &F::gpu_count, ""), field("GPU memory (GB)", &F::gpu_memory_gb, ""),
        field("parameters", &F::parameters, ""), field("trainable parameters", &F::trainable_parameters, ""),
        field("frozen parameters", &F::frozen_parameters, ""), field("steps", &F::max_steps, ""),
        field("global batch size", &F::global_batch_size, ""), field("micro-batch size", &F::micro_batch_size, ""),
        field("sequence length", &F::sequence_length, ""), field("tensor parallel", &F::tensor_parallel, ""),
        field("pipeline parallel", &F::pipeline_parallel, ""), field("data parallel", &F::data_parallel, ""),
        field("context parallel", &F::context_parallel, ""), field("gradient accumulation", &F::accumulation_steps, ""),
        field("warm-up steps", &F::warmup_steps, ""), field("seed", &F::seed, ""),
        field("virtual pipeline", &F::virtual_pipeline, ""), field("ZeRO stage", &F::zero_stage, ""),
        field("expert parallel", &F::expert_parallel, ""),
        field("expert tensor parallel", &F::expert_tensor_parallel, ""), field("routing", &F::routing, ""),
        field("dispatcher", &F::dispatcher, ""), field("sequence parallel", &F::sequence_parallel, ""),
        field("learning rate", &F::learning_rate, ""), field("minimum learning rate", &F::min_learning_rate, ""),
        field("weight decay", &F::weight_decay, ""), field("gradient clipping", &F::clip_grad_norm, ""),
        field("assumed peak (FLOP/s)", &F::peak_flops, ""));
  }
};

struct RankMemory {
  int32_t rank = -1;
  MemoryKind kind = MemoryKind::allocated;
  bool operator<(const RankMemory& o) const { return rank != o.rank ? rank < o.rank : kind < o.kind; }
};

inline constexpr int64_t k_max_events = 1000;  // of one kind that are kept; more are counted only

// The content of one log, before any of it is judged.
struct ExtractedLog {
  std::vector<ExtractedStep> steps;  // one per step and attempt, in the order of the log
  int64_t records = 0;               // lines (or events) that reported a step, copies included
  int64_t disputed = 0;              // steps of which a second record has another loss and time
  std::string mixed;                 // evidence of several interleaved runs, as a sentence; empty: none
  LoggedFacts facts;
  std::map<std::string, std::string> settings;          // effective configuration, by the framework's own names
  std::map<std::string, std::string> dropped_settings;  // left out by the framework, and why: "the target is int"
  std::map<RankMemory, double> memory_gb;               // the highest value of each kind on each rank, GB = 1e9 bytes
  std::vector<LogEvent> events;                         // in the order of the log
  std::map<EventKind, int64_t> event_counts;            // those beyond k_max_events included
  std::optional<TimeToTrain> time_to_train;             // where a target quality ends the training
  std::vector<std::string> notes;                       // sentences a reader must know before trusting the figures
};

}  // namespace tprimat::logs
