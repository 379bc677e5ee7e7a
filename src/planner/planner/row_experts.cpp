#include "planner/row_experts.h"
#include "planner/recomputed_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "published/cells.h"
#include "published/framework_formulas.h"
#include "text/enum_names.h"

namespace tprimat::planner {

std::optional<int64_t> printed_number(const PublishedRow& row, const std::string& column, const char* pattern) {
  const auto found = find_in_cell(row, column, pattern);
  return found.empty() ? std::nullopt : std::optional<int64_t>(std::stoll(found[0]));
}

namespace {

// The summaries of Megatron-Bridge and the tables of dgxc-benchmarking force balanced routing.
bool forces_balance(const PublishedRow& row) {
  const std::string program = lower_text(row.cell("framework"));
  return program == "nemo" || mentions(program, "/ nemo");
}

bool prints_place(const PublishedRow& row) {
  for (const char* column : {"tp", "pp", "ep"})
    if (count_cell(row, column)) return true;
  return mentions(lower_text(row.cell("sharding")), "fsdp");
}

int64_t ranks_of_stage(const Layout& layout) { return layout.tensor * layout.context * layout.data; }

// The expert ranks whose number a row does not print: the ranks that "fsdp N" leaves; else as many as divide both the
// experts and the ranks, at most a node.
int64_t assume_expert_ranks(const PublishedWorkload& read, const PublishedRow& row) {
  const Layout& layout = read.workload.layout;
  const int64_t ranks = ranks_of_stage(layout), most = std::gcd(read.workload.shape.experts->count, ranks);
  const auto sharded = printed_number(row, "sharding", "fsdp ([1-9][0-9]{0,6})");
  if (sharded && ranks % *sharded == 0 && most % (ranks / *sharded) == 0) return ranks / *sharded;
  int64_t each = 1;
  while (each * 2 <= std::min<int64_t>(8, read.machine.gpus_per_domain) && most % (each * 2) == 0) each *= 2;
  return each;
}

// NeMo 2 up to release 25.02 left Megatron-Core's expert_tensor_parallel_size at its default, the tensor-parallel size;
// the recipes of Megatron-Bridge and Megatron-LM set it to 1.
bool splits_experts_by_tensor(const PublishedRow& row) {
  const std::string program = lower_text(row.cell("framework"));
  return program == "nemo" || mentions(program, "core 0.");
}

bool fit(const Layout& layout, const Experts& experts) {
  const double product = static_cast<double>(layout.expert) * static_cast<double>(layout.expert_tensor);
  return product <= static_cast<double>(ranks_of_stage(layout)) &&
         ranks_of_stage(layout) % (layout.expert * layout.expert_tensor) == 0 && experts.count % layout.expert == 0;
}

}  // namespace

namespace {

// "capacity factor 1.25"
void read_capacity(Experts& experts, const PublishedRow& row) {
  constexpr double k_max_factor = 100;
  const auto found = find_in_notes(row, "capacity factor ([0-9]{1,3}(?:[.][0-9]{1,4})?)");
  const auto factor = found.empty() ? std::nullopt : parse_printed(found[0]);
  if (factor && factor->value <= k_max_factor) experts.capacity_factor = factor->value;
}

// torchtitan/distributed/llep/README.md of pytorch/torchtitan at 198ff4f: hot experts are copied until no rank takes
// more than this over the mean.
constexpr double k_max_load = 1.1;

bool spreads_load(const std::string& notes) {
  return mentions(notes, "least-loaded") || (mentions(notes, "llep") && !mentions(notes, "no llep"));
}

}  // namespace

std::optional<Routing> noted_routing(const PublishedRow& row) {
  const std::string notes = lower_text(row.cell("notes"));
  if (mentions(notes, "real routing")) return Routing::learned;
  if (mentions(notes, "balanced") || forces_balance(row)) return Routing::balanced;
  return std::nullopt;
}

void read_usual_settings(PublishedWorkload& read, const PublishedRow& row) {
  Workload& workload = read.workload;
  if (!workload.shape.experts) return;
  const std::string notes = lower_text(row.cell("notes"));
  read_capacity(*workload.shape.experts, row);
  if (spreads_load(notes)) workload.expert_load = k_max_load;
  if (const auto noted = noted_routing(row)) workload.routing = noted;
  read.usual = find_usual_settings(
      {row.cell("framework"), workload.shape.name, read.machine.id, workload.release, workload.routing});
  if (read.usual == nullptr) return;
  if (!workload.routing) workload.routing = parse_enum<Routing>(read.usual->fact("routing"));
  read.assumptions.push_back("settings of " + read.usual->source);
}

PublishedRow complete_layout(PublishedWorkload& read, const PublishedRow& row) {
  PublishedRow complete = row;
  if (!read.workload.shape.experts || prints_place(row) || read.workload.family->fully_sharded) return complete;
  read.weak = "its layout is not printed";
  const UsualSettings none, &usual = read.usual == nullptr ? none : *read.usual;
  const auto add = [&](const char* column, std::string_view text) {
    if (complete.cell(column).empty() && !text.empty()) complete.cells[column] = std::string(text);
  };
  const std::pair<const char*, const char*> columns[] = {{"tp", "tensor"},  {"pp", "pipeline"}, {"vp", "chunks"},
                                                         {"cp", "context"}, {"ep", "expert"},   {"gbs", "batch"},
                                                         {"mbs", "micro"}};
  for (const auto& [column, fact] : columns) add(column, usual.fact(fact));
  add("tp", "1");
  return complete;
}

std::string read_expert_layout(PublishedWorkload& read, const PublishedRow& row) {
  if (!read.workload.shape.experts) return "";
  Layout& layout = read.workload.layout;
  const Experts& experts = *read.workload.shape.experts;
  const auto printed = count_cell(row, "ep");
  layout.expert = printed ? std::gcd(*printed, ranks_of_stage(layout)) : assume_expert_ranks(read, row);
  if (printed != layout.expert && layout.expert > 1) read.assumptions.push_back(fmt::format("EP {}", layout.expert));
  const auto noted = printed_number(row, "notes", "ETP ?([1-9][0-9]{0,4})");
  layout.expert_tensor = noted.value_or(splits_experts_by_tensor(row) ? layout.tensor : 1);
  if (!noted && !fit(layout, experts)) layout.expert_tensor = 1;
  if (!fit(layout, experts)) return "an inconsistent layout";
  if (printed && *printed != layout.expert) read.weak = "its expert ranks are more than its stages have";
  if (!noted && layout.expert_tensor > 1) read.assumptions.push_back(fmt::format("ETP {}", layout.expert_tensor));
  return "";
}

namespace {

std::optional<Dispatcher> dispatcher_in(const std::string& text) {
  for (const std::string_view word : {"hybridep", "hybrid-ep", "megamoe", "mega moe"})
    if (mentions(text, word)) return Dispatcher::hybridep;
  if (mentions(text, "deepep")) return Dispatcher::deepep;
  for (const std::string_view word : {"all-to-all", "alltoall", "all to all", "standard ep"})
    if (mentions(text, word)) return Dispatcher::alltoall;
  if (mentions(text, "allgather") || mentions(text, "all-gather")) return Dispatcher::allgather;
  return std::nullopt;
}

// Nothing where they say nothing.
std::optional<bool> overlaps_exchanges(const std::string& notes) {
  for (const std::string_view word : {"overlap off", "no overlap", "without overlap", "no ep overlap"})
    if (mentions(notes, word)) return false;
  for (const std::string_view word :
       {"ep overlap", "ep communication overlap", "all-to-all overlap", "alltoall overlap", "a2a overlap"})
    if (mentions(notes, word)) return true;
  return std::nullopt;
}

}  // namespace

namespace {

bool speaks_of_graphs(const std::string& notes) {
  return mentions(notes, "cuda graph") || mentions(notes, "cudagraph");
}

// "full-iteration CUDA graph", "full CUDA graph"
bool speaks_of_step_graph(const std::string& notes) {
  return mentions(notes, "full-iteration") || mentions(notes, "full cuda graph");
}

// NVIDIA/Megatron-LM docs/discussions/deepseek-v3-gb200-optimization: each step keeps what the steps before it brought,
// DeepEP, CUDA graphs and HybridEP among them, which the notes of later steps do not repeat.
void read_series(Workload& workload, const PublishedRow& row) {
  constexpr int64_t k_deepep = 3, k_graphs = 5, k_hybridep = 10;
  const auto step = printed_number(row, "notes", "cumulative optimization step ([0-9]{1,2}) of");
  if (!step || workload.shape.name != "deepseek_v3") return;
  workload.dispatcher = *step >= k_hybridep ? Dispatcher::hybridep
                        : *step >= k_deepep ? Dispatcher::deepep
                                            : Dispatcher::alltoall;
  workload.graphs = *step >= k_graphs ? Graphs::parts : Graphs::none;
}

}  // namespace

void read_expert_features(Workload& workload, const PublishedRow& row) {
  const std::string notes = lower_text(row.cell("notes"));
  if (mentions(notes, "low-precision optimizer moments")) workload.moment_bytes = 2;
  if (speaks_of_graphs(notes)) workload.graphs = speaks_of_step_graph(notes) ? Graphs::whole : Graphs::parts;
  if (!workload.shape.experts) return;
  workload.dispatcher = dispatcher_in(notes + ' ' + lower_text(row.cell("framework")));
  read_series(workload, row);
}

PublishedRow complete_by_settings(PublishedWorkload& read, const PublishedRow& row) {
  PublishedRow complete = row;
  Workload& workload = read.workload;
  if (!workload.shape.experts) return complete;
  const UsualSettings none, &usual = read.usual == nullptr ? none : *read.usual;
  const std::string notes = lower_text(row.cell("notes"));
  if (usual.fact("moments") == "2") workload.moment_bytes = 2;
  if (usual.states("compiled")) workload.compiled = true;
  // A recipe of that very layout says them all.
  const bool known = workload.dispatcher || workload.graphs != Graphs::none || workload.overlaps_experts;
  if (!known && usual.states("graphs")) workload.graphs = Graphs::parts;
  if (!known) workload.overlaps_experts = usual.states("overlap");
  if (!workload.dispatcher) workload.dispatcher = parse_enum<Dispatcher>(usual.fact("dispatcher"));
  workload.overlaps_experts = overlaps_exchanges(notes).value_or(workload.overlaps_experts);
  if (complete.cell("recompute").empty()) complete.cells["recompute"] = std::string(usual.fact("recompute"));
  return complete;
}

void read_prediction_layers(PublishedWorkload& read, const PublishedRow& row) {
  Workload& workload = read.workload;
  ModelSpec& model = workload.shape;
  const int64_t own = model.prediction_layers.value_or(0);
  if (const auto noted = printed_number(row, "notes", "MTP ([0-9]{1,2})")) {
    model.prediction_layers = *noted;
    return;
  }
  if (own == 0 || mentions(lower_text(row.cell("model")), "mtp")) return;
  const auto rate = parse_printed(row.cell("tokens_per_s_per_gpu")), flops = parse_printed(row.cell("tflops_per_gpu"));
  // AMD-AGI/Primus examples/megatron/configs (mtp_num_layers: null) and MaxText's configurations train none.
  const std::string program = lower_text(row.cell("framework"));
  if ((mentions(program, "primus") || mentions(program, "maxtext")) && !(rate && flops)) model.prediction_layers = 0;
  if (!rate || !flops) return;
  const double printed = flops->value * 1e12 / rate->value;
  const auto off = [&](int64_t layers) {
    ModelSpec counted = model;
    counted.prediction_layers = layers;
    return std::fabs(megatron_flops(counted, workload.sequence_length, workload.layout.tensor) / printed - 1);
  };
  if (off(0) < off(own)) model.prediction_layers = 0;
}

namespace {

// As Megatron-Bridge's recipes and Megatron-LM's examples cut 61 layers ("Et*4|(t*4|)*14tmL", "Et|(tt|)*30mL"): all
// places are alike and the last, with the loss, has what is left; where nothing would be left, the first has it.
// recipes/deepseek/h100/deepseek_v3.py and recipes/kimi/h100/kimi_k2.py of NVIDIA-NeMo/Megatron-Bridge at 067f987,
// scripts/performance/configs/deepseek at v0.2.0.
std::vector<int64_t> cut_as_megatron(int64_t layers, int64_t places) {
  const int64_t each = (layers + places - 1) / places, rest = layers - each * (places - 1);
  std::vector<int64_t> cut(static_cast<size_t>(places), each);
  cut.back() = std::max<int64_t>(0, rest);
  if (rest < 0) cut.front() = each + rest;
  return cut.front() < 0 ? std::vector<int64_t>{} : cut;
}

// Those that have one layer less are the first and the last: "Et*5|(t*6|)*14t*5,L" for 94 layers.
// AMD-AGI/Primus examples/megatron/configs/MI355X at fd1eeab.
std::vector<int64_t> cut_as_primus(int64_t layers, int64_t places) {
  const int64_t each = layers / places, shorter = places - layers % places;
  std::vector<int64_t> cut(static_cast<size_t>(places), each);
  for (int64_t place = (shorter + 1) / 2; place < places - shorter / 2; ++place) ++cut[static_cast<size_t>(place)];
  return cut;
}

// "Et*3|(tt|)*29,m|L": DeepSeek-V3's layers on 32 places, the last two of which predict and have the loss
// (docs/user-guide/features/pipeline_parallel_layout.md of NVIDIA/Megatron-LM at d48bd6b).
std::vector<int64_t> cut_with_prediction(int64_t places) {
  std::vector<int64_t> cut(static_cast<size_t>(places), 2);
  cut.front() = 3, cut.back() = cut[cut.size() - 2] = 0;
  return cut;
}

}  // namespace

void cut_unevenly(PublishedWorkload& read, const PublishedRow& row) {
  Workload& workload = read.workload;
  const Layout& layout = workload.layout;
  const int64_t layers = workload.shape.num_layers, places = layout.pipeline * layout.chunks;
  if (!workload.shape.experts || layout.ends_as_layers || places <= 1 || places > layers || layers % places == 0)
    return;
  if (workload.family->fills_stages || workload.family->balances_ends) return;
  std::vector<int64_t>& cut = workload.layers_of_places;
  const bool primus = mentions(lower_text(row.cell("framework")), "primus");
  if (!primus) cut = cut_as_megatron(layers, places);
  if (!primus && workload.shape.prediction_layers.value_or(0) > 0 && layers == 3 + 2 * (places - 3))
    cut = cut_with_prediction(places);
  if (cut.empty()) cut = cut_as_primus(layers, places);
  read.assumptions.push_back(fmt::format("{} layers first, {} last", cut.front(), cut.back()));
}

std::string weakness_of(const PublishedRow& row) {
  struct Reason {
    std::string_view word, reason;
  };
  constexpr Reason k_reasons[] = {{"leave out of fits", "its source says to leave it out of fits"},
                                  {"vision encoder", "a vision encoder is trained too"},
                                  {"offload study", "a study of offloading"},
                                  {"read from a bar chart", "read from a bar chart"},
                                  {"unit test", "three iterations of a test"},
                                  {"unit-test", "three iterations of a test"},
                                  {" 3 iterations", "three iterations of a test"},
                                  {"smoke run", "a smoke run"},
                                  {"footnoted in source", "its source has a reservation about it"},
                                  {"layout not known", "its layout is not known"}};
  const std::string notes = lower_text(row.cell("notes"));
  const auto step = find_in_notes(row, "optimization step ([0-9]{1,4}) of ([0-9]{1,4})");
  if (!step.empty() && step[0] != step[1]) return "a program that was still being tuned";
  if (row.cell("notes").substr(0, 1000).find("CHECK") != std::string::npos)
    return "marked CHECK: its figures contradict each other";
  for (const Reason& each : k_reasons)
    if (mentions(notes, each.word)) return std::string(each.reason);
  const Family* family = find_printed_family(row.cell("framework"));
  const bool timed = !row.cell("tokens_per_s_per_gpu").empty() || !row.cell("tokens_per_s").empty() ||
                     !row.cell("step_time_s").empty();
  if (family != nullptr && family->id == "deepspeed_moe" && !timed)
    return "its source does not say how it counts FLOPs";
  return "";
}

}  // namespace tprimat::planner
