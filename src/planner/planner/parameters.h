#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/measured_runs.h"
#include "planner/workload.h"

namespace tprimat::planner {

// One calibrated figure of the time model. Its name is "<key>", "<key>@<architecture>", "<key>@<family>" or
// "<key>@machine:<machine>": of one machine alone, from its own results.
struct PlanParameter {
  std::string name;
  double value = 0;
  double prior = 0;   // what it was believed to be before any measurement
  double spread = 0;  // standard deviation of that belief, of the natural logarithm; 0: held at the prior
  double low = 0, high = 0;
  std::string meaning;  // empty for all but the first of a key
  bool is_within_bounds() const { return low <= std::min(value, prior) && std::max(value, prior) <= high; }
};

// Ordered as in src/planner/planner/parameters.tsv, so that a fitted set prints as a small difference.
class ParameterSet {
 public:
  explicit ParameterSet(std::vector<PlanParameter> parameters);

  const std::vector<PlanParameter>& all() const { return parameters_; }
  void set_value(size_t index, double value);  // kept within low and high
  double at(std::string_view key) const;       // CHECK: it exists
  // The parameter of that scope, else of the key alone, else `otherwise`.
  double scoped(std::string_view key, std::string_view scope, double otherwise) const;
  const PlanParameter* find(std::string_view name) const;                             // null where there is none
  const PlanParameter* find_own(std::string_view key, const Machine& machine) const;  // "<key>@machine:<machine>"
  void drop_machines();                          // forgets what belongs to single machines
  void reset();                                  // every value to its prior, and no measured runs
  bool replace(const PlanParameter& parameter);  // false where there is none of that name; a machine's own is added
  void add(const PlanParameter& parameter);      // unless one of that name is there
  // Factors about 1 of the workload's release and model and of the part, "release@26.04", "model@qwen3_8b" and
  // "part@GB200", unless they are there.
  void add_factors(const Workload& workload, const Machine& machine);

  const std::vector<MeasuredRun>& measured_runs() const { return *runs_; }
  void set_measured_runs(std::vector<MeasuredRun> runs);

 private:
  std::vector<PlanParameter> parameters_;
  std::map<std::string, size_t, std::less<>> index_;
  std::shared_ptr<const std::vector<MeasuredRun>> runs_ = std::make_shared<const std::vector<MeasuredRun>>();
};
const ParameterSet& built_in_parameters();
inline constexpr std::string_view k_machine_scope = "machine:";
std::string machine_scope(const Machine& machine);  // "machine:H100-SXM-80GB"

// The share of a machine's peak that it reaches in what the key names ("product_16", "memory", "link"): by its own
// results, else by what a probe measured, else by its architecture; nothing where none of them has it.
std::optional<double> reached_share(const ParameterSet& parameters, const Machine& machine, std::string_view key);

// Whether measurements of that machine's architecture stand behind the parameters; of our own trainer, which is fitted
// to one processor, whether a fit followed on that. A figure that was never fitted is its prior.
bool rests_on_measurements(const ParameterSet& parameters, const Machine& machine, const Family& family);

// The built-in ones with those of a file in their place. Throws Error, naming `path` and the line, for anything that
// format_parameters() did not write.
ParameterSet parse_parameters(std::string_view text, const std::string& path);
std::string format_parameters(const ParameterSet& parameters);  // the text of parameters.tsv

// What a processor achieves under our own trainer; rates and seconds are of one core.
struct NativeRates {
  double product = 0;          // FLOP/s of large matrix products
  double saturation = 0;       // rows, columns or depth at which a product reaches half of that
  double split = 0;            // more core-seconds of a product that several threads share, relative
  double attention = 0;        // FLOP/s of the attention core
  double softmax_seconds = 0;  // and of each of its scores, forward
  double element_seconds = 0;  // per element of norms, rotary positions and activations, forward
  double score_seconds = 0;    // per score of the loss
  double update_seconds = 0;   // per weight that the rank updates
  double cached_bytes = 0;     // of weights and their states that stay in a core's cache
  double call = 0;             // seconds per operation, whatever its size
  double thread_call = 0;      // more of them where several threads wait for each other
  double copy_seconds = 0;     // per byte from another rank
  double message = 0;          // seconds per message
  double network = 0;          // bytes/s of a rank between nodes
  double turn = 0;             // seconds per exchange for each rank that waits for a core
  double crowd = 0;            // more core-seconds of all work for each such rank, relative
  double step_start = 0;       // seconds per step
  double scale = 1;            // whole step, relative
};

struct ProductRate {
  double flops_per_second;
  double saturation;  // half of the rate is reached where one dimension is this and the others are large
  double misaligned;  // share of the rate that is left where a dimension is no multiple of 64 elements
};

// What a machine achieves under a program: parameters and peaks brought together, in plain units.
struct Rates {
  double product_16 = 0;     // FLOP/s of large matrix products with 16-bit inputs
  double product_low = 0;    // of those that run in the training's precision
  double saturation_16 = 0;  // rows, columns or depth at which a product reaches half of that
  double saturation_low = 0;
  double misaligned = 1;          // factor for each dimension that is no multiple of 64
  double misaligned_head = 1;     // factor of unfused attention where the width of a head is no multiple of 8
  double attention = 0;           // FLOP/s of the attention core
  double attention_start = 0;     // tokens of a sequence at which fused attention reaches half of that
  double attention_width = 0;     // width of a head at which it reaches half of the rate of very wide ones
  double attention_backward = 1;  // time of its backward pass over that by FLOPs
  double score_bytes = 0;         // unfused attention: bytes moved per score, forward
  double memory = 0;              // bytes/s
  double hidden_bytes = 0;        // elements moved per element of the residual stream and layer, forward
  double inner_bytes = 0;         // elements moved per element of the MLP's inner width and matrix
  double cast_bytes = 0;          // FP8 and below: moved per element that is converted
  double context_cost = 0;        // relative, of attention per doubling of the context-parallel ranks
  double link = 0;                // bytes/s inside a domain
  double network = 0;             // bytes/s per GPU between domains
  double link_latency = 0;        // seconds per step of a ring inside a domain
  double exchange_latency = 0;    // seconds that a sharded optimizer loses per rank
  double gather_latency = 0;      // seconds per layer and doubling of the ranks, sharded weights
  double tensor_overlap = 0;      // share of tensor-parallel exchanges that hides behind products
  double data_overlap = 0;        // share of a micro-batch's computing that exchanges can hide behind
  double sharded_overlap = 0;     // the same where weights are gathered layer by layer
  double data_leak = 0;           // share of hidden exchanges that is felt all the same
  double transfer_share = 0;      // share of a pipeline's transfers that is felt
  double layer_overhead = 0;      // seconds that each layer adds to a micro-batch, in each of its passes
  double layer_start = 0;         // seconds that a layer's forward pass takes at least (launching)
  double step_start = 0;          // seconds per step
  double node_start = 0;          // seconds per step and doubling of the nodes
  double straggling = 0;          // relative, per doubling of the nodes
  double grouped = 1;             // rate of the experts' products over that of others of their shape
  double grouped_saturation = 1;  // and their saturation over that of others
  double routed_bytes = 0;        // elements moved per element of a token's copy for an expert, forward
  double expert_launch =
      0;  // seconds that launching a layer with experts takes, forward; as long as the GPU computes, or longer
  double cast_launch = 0;     // more of them for each expert of the rank whose inputs are converted to FP8 or FP4
  double token_link = 0;      // bytes/s of exchanges of tokens inside a domain
  double token_network = 0;   // and between domains
  double expert_overlap = 0;  // share of these exchanges that hides
  double learned_load = 0;    // more copies on the fullest of 8 ranks where a router chooses, relative to the mean
  double latent = 1;          // rate of attention with latent keys over that of others
  double adapters = 1;        // time of a frozen weight's product with its adapter over that without
  double scale = 1;           // of the program, times that of its release
  NearRuns near_runs = {};    // of sparse models: measured runs that correct the whole step
  NativeRates native = {};    // of our own trainer alone

  ProductRate low() const { return {product_low, saturation_low, misaligned}; }
  // Of a collective among so many ranks of a domain: a mesh's GPUs have a link for each.
  double link_among(const Machine& machine, int64_t ranks) const {
    return link * machine.link_bandwidth_among(ranks) / machine.link_bandwidth;
  }
};
Rates resolve_rates(const ParameterSet& parameters, const Machine& machine, const Workload& workload);

// The figures that a prediction rests on, and where they come from.
struct PlannerSettings {
  ParameterSet parameters = built_in_parameters();
  std::string file = {};  // that `tprimat plan --calibrate` wrote; empty: they are built in
  bool is_built_in() const { return file.empty(); }
  std::string source() const { return is_built_in() ? "built-in" : file; }
};

// The built-in ones for an empty path. Throws Error.
PlannerSettings load_planner_settings(const std::string& path);

NativeRates resolve_native_rates(const ParameterSet& parameters, const Machine& machine, const Workload& workload);

}  // namespace tprimat::planner
