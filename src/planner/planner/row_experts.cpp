#include "planner/row_experts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "published/cells.h"
#include "published/framework_formulas.h"

namespace tprimat::planner {
namespace {

// A number that stands in a cell; `pattern` admits at most nine digits.
std::optional<int64_t> number_in(const PublishedRow& row, const std::string& column, const char* pattern) {
  const auto found = find_in_cell(row, column, pattern);
  return found.empty() ? std::nullopt : std::optional<int64_t>(std::stoll(found[0]));
}

int64_t ranks_of_stage(const Layout& layout) { return layout.tensor * layout.context * layout.data; }

// The expert ranks whose number a row does not print: as many as divide both the experts and the ranks, at most a node.
int64_t assume_expert_ranks(const PublishedWorkload& read) {
  const Layout& layout = read.workload.layout;
  const int64_t most = std::gcd(read.workload.shape.experts->count, ranks_of_stage(layout));
  int64_t ranks = 1;
  while (ranks * 2 <= std::min<int64_t>(8, read.machine.gpus_per_domain) && most % (ranks * 2) == 0) ranks *= 2;
  return ranks;
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

std::string read_expert_layout(PublishedWorkload& read, const PublishedRow& row) {
  if (!read.workload.shape.experts) return "";
  Layout& layout = read.workload.layout;
  const Experts& experts = *read.workload.shape.experts;
  const auto printed = count_cell(row, "ep");
  layout.expert = printed.value_or(assume_expert_ranks(read));
  if (!printed && layout.expert > 1) read.assumptions.push_back(fmt::format("EP {}", layout.expert));
  const auto noted = number_in(row, "notes", "ETP ?([1-9][0-9]{0,4})");
  layout.expert_tensor = noted.value_or(splits_experts_by_tensor(row) ? layout.tensor : 1);
  if (!noted && !fit(layout, experts)) layout.expert_tensor = 1;
  if (!fit(layout, experts)) return "an inconsistent layout";
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

bool overlaps_exchanges(const std::string& notes) {
  for (const std::string_view word : {"overlap off", "no overlap", "without overlap", "no ep overlap"})
    if (mentions(notes, word)) return false;
  for (const std::string_view word :
       {"ep overlap", "ep communication overlap", "all-to-all overlap", "alltoall overlap", "a2a overlap"})
    if (mentions(notes, word)) return true;
  return false;
}

// The summaries of Megatron-Bridge and the tables of dgxc-benchmarking force balanced routing.
bool forces_balance(const PublishedRow& row) {
  const std::string program = lower_text(row.cell("framework"));
  return program == "nemo" || mentions(program, "/ nemo");
}

}  // namespace

void read_expert_features(Workload& workload, const PublishedRow& row) {
  const std::string notes = lower_text(row.cell("notes"));
  const std::string said = notes + ' ' + lower_text(row.cell("framework"));
  if (mentions(notes, "low-precision optimizer moments")) workload.moment_bytes = 2;
  if (mentions(notes, "cuda graph") || mentions(notes, "cudagraph"))
    workload.graphs = mentions(notes, "full") || mentions(notes, "whole") ? Graphs::whole : Graphs::parts;
  if (!workload.shape.experts) return;
  if (mentions(notes, "real routing"))
    workload.routing = Routing::learned;
  else if (mentions(notes, "balanced") || forces_balance(row))
    workload.routing = Routing::balanced;
  workload.dispatcher = dispatcher_in(said);
  workload.overlaps_experts = overlaps_exchanges(notes);
}

void read_prediction_layers(PublishedWorkload& read, const PublishedRow& row) {
  Workload& workload = read.workload;
  ModelSpec& model = workload.shape;
  const int64_t own = model.prediction_layers.value_or(0);
  if (const auto noted = number_in(row, "notes", "MTP ([0-9]{1,2})")) {
    model.prediction_layers = *noted;
    return;
  }
  if (own == 0 || mentions(lower_text(row.cell("model")), "mtp")) return;
  const auto rate = parse_printed(row.cell("tokens_per_s_per_gpu")), flops = parse_printed(row.cell("tflops_per_gpu"));
  if (!rate || !flops) return;
  const double printed = flops->value * 1e12 / rate->value;
  const auto off = [&](int64_t layers) {
    ModelSpec counted = model;
    counted.prediction_layers = layers;
    return std::fabs(megatron_flops(counted, workload.sequence_length, workload.layout.tensor) / printed - 1);
  };
  if (off(0) < off(own)) model.prediction_layers = 0;
}

void cut_unevenly(PublishedWorkload& read) {
  Workload& workload = read.workload;
  const Layout& layout = workload.layout;
  const int64_t layers = workload.shape.num_layers, places = layout.pipeline * layout.chunks;
  if (places <= 1 || places > layers || layers % places == 0) return;
  if (!workload.shape.experts || workload.family->fills_stages || workload.family->balances_ends) return;
  // As the layouts of Megatron-Bridge's recipes for 61 layers (recipes/deepseek/h100/deepseek_v3.py and
  // recipes/kimi/h100/kimi_k2.py at 067f987): all places are alike, and the last, with the loss, has what is left.
  const int64_t each = (layers + places - 1) / places;
  std::vector<int64_t>& cut = workload.layers_of_places;
  int64_t left = layers;
  for (int64_t place = 0; place < places; ++place) {
    // leaves one for each place behind
    cut.push_back(std::min(each, left - (places - place - 1)));
    left -= cut.back();
  }
  read.workload.layout.ends_as_layers = false;
  read.assumptions.push_back(fmt::format("{} layers a stage, {} on the last", each, cut.back()));
}

namespace {

std::vector<RecomputedModule> modules_in(const std::string& text) {
  struct Word {
    std::string_view word;
    RecomputedModule module;
  };
  constexpr Word k_words[] = {{"core_attn", RecomputedModule::attention_core},
                              {"norm", RecomputedModule::norms},
                              {"layernorm", RecomputedModule::norms},
                              {"moe_act", RecomputedModule::expert_activation},
                              {"act", RecomputedModule::expert_activation},
                              {"mla_up_proj", RecomputedModule::latent_projections},
                              {"up_proj", RecomputedModule::latent_projections},
                              {"mlp", RecomputedModule::dense_mlp},
                              {"moe", RecomputedModule::experts},
                              {"shared_experts", RecomputedModule::shared}};
  std::vector<RecomputedModule> modules;
  std::string word;
  for (const char c : text + ',') {
    if (c != ',' && c != ' ' && c != ';' && c != '+') {
      word += c;
      continue;
    }
    for (const Word& known : k_words)
      if (known.word == word && std::ranges::find(modules, known.module) == modules.end())
        modules.push_back(known.module);
    word.clear();
  }
  return modules;
}

double number(int64_t value) { return static_cast<double>(value); }

// Weights of the products of a mean layer that a token passes, and those of one module.
double module_weights(const ModelSpec& m, RecomputedModule module) {
  const double matrices = m.mlp == MlpKind::swiglu ? 3 : 2, hidden = number(m.hidden_size);
  const double sparse = number(m.expert_layers()) / number(std::max<int64_t>(1, m.num_layers));
  switch (module) {
    case RecomputedModule::latent_projections: {
      if (!m.latent_attention) return 0;
      const LatentAttention& a = *m.latent_attention;
      const double heads = number(m.num_attention_heads), query = number(m.head_dim + a.rope_head_dim);
      return heads * (number(a.query_rank) * query + number(a.key_value_rank) * number(m.head_dim + a.value_head_dim));
    }
    case RecomputedModule::dense_mlp: return (1 - sparse) * matrices * hidden * number(m.ffn_hidden_size);
    case RecomputedModule::experts:
      return m.experts ? sparse * matrices * hidden *
                             (number(m.experts->per_token) * number(m.experts->ffn_hidden_size) +
                              number(m.experts->shared_ffn_hidden_size))
                       : 0;
    case RecomputedModule::shared:
      return m.experts ? sparse * matrices * hidden * number(m.experts->shared_ffn_hidden_size) : 0;
    default: return 0;
  }
}

double share_of_modules(const Workload& workload) {
  const ModelSpec& m = workload.shape;
  const ParameterCount count = count_parameters(m);
  const double all =
      (number(count.matmul_active) - number(m.vocab_size) * number(m.hidden_size)) / number(m.num_layers);
  double repeated = 0;
  for (const RecomputedModule module : workload.recomputed_modules) repeated += module_weights(m, module);
  return all > 0 ? std::clamp(repeated / all, 0.0, 1.0) : 0;
}

}  // namespace

void read_partial_recompute(PublishedWorkload& read, const PublishedRow& row) {
  Workload& workload = read.workload;
  const std::string text = lower_text(row.cell("recompute"));
  const double layers = number(workload.shape.num_layers);
  Recompute& recompute = workload.layout.recompute;
  const auto repeated = number_in(row, "recompute", "([1-9][0-9]{0,4}) layers?");
  if (mentions(text, "per virtual stage") && repeated) {
    recompute = Recompute::full;
    workload.recomputed_share =
        std::min(1.0, number(*repeated * workload.layout.pipeline * workload.layout.chunks) / layers);
  } else if (repeated && (text.starts_with("full") || mentions(text, "by id"))) {
    recompute = Recompute::full;
    workload.recomputed_share = std::min(1.0, number(*repeated) / layers);
  } else if (text.starts_with("selective:")) {
    workload.recomputed_modules = modules_in(text.substr(text.find(':') + 1));
    if (!workload.recomputed_modules.empty()) workload.recomputed_share = share_of_modules(workload);
  }
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
                                  {"layout not known", "its layout is not known"}};
  const std::string notes = lower_text(row.cell("notes"));
  if (row.cell("notes").substr(0, 1000).find("CHECK") != std::string::npos)
    return "marked CHECK: its figures contradict each other";
  for (const Reason& each : k_reasons)
    if (mentions(notes, each.word)) return std::string(each.reason);
  return "";
}

}  // namespace tprimat::planner
