#include "planner/recomputed_share.h"

#include <algorithm>

#include "spec/model_spec.h"

namespace tprimat::planner {
namespace {

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

}  // namespace

double share_of_modules(const Workload& workload) {
  const ModelSpec& m = workload.shape;
  const ParameterCount count = count_parameters(m);
  const double all =
      (number(count.matmul_active) - number(m.vocab_size) * number(m.hidden_size)) / number(m.num_layers);
  double repeated = 0;
  for (const RecomputedModule module : workload.recomputed_modules) repeated += module_weights(m, module);
  return all > 0 ? std::clamp(repeated / all, 0.0, 1.0) : 0;
}

std::vector<RecomputedModule> usual_modules(const ModelSpec& m, bool narrow) {
  std::vector<RecomputedModule> modules;
  if (!narrow) modules = {RecomputedModule::norms, RecomputedModule::expert_activation};
  if (m.latent_attention) modules.push_back(RecomputedModule::latent_projections);
  return modules;
}

}  // namespace tprimat::planner
