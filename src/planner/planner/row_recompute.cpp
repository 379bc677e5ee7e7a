#include "planner/row_experts.h"

#include <algorithm>

#include "published/cells.h"

namespace tprimat::planner {
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

void read_partial_recompute(Workload& workload, const PublishedRow& row) {
  const std::string text = lower_text(row.cell("recompute"));
  const double layers = number(workload.shape.num_layers);
  Recompute& recompute = workload.layout.recompute;
  const auto repeated = printed_number(row, "recompute", "([1-9][0-9]{0,4}) layers?");
  if (mentions(text, "per virtual stage") && repeated) {
    recompute = Recompute::full;
    workload.recomputed_share =
        std::min(1.0, number(*repeated * workload.layout.pipeline * workload.layout.chunks) / layers);
  } else if (repeated && (text.starts_with("full") || mentions(text, "by id"))) {
    // recompute_num_layers of Megatron-Core counts in each chunk; layers by their number, in the model
    const int64_t chunks = mentions(text, "by id") ? 1 : workload.layout.pipeline * workload.layout.chunks;
    recompute = Recompute::full;
    workload.recomputed_share = std::min(1.0, number(*repeated * chunks) / layers);
  } else if (text.starts_with("selective:")) {
    workload.recomputed_modules = modules_in(text.substr(text.find(':') + 1));
    if (!workload.recomputed_modules.empty()) workload.recomputed_share = share_of_modules(workload);
  }
}

}  // namespace tprimat::planner
