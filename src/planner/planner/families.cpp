#include "planner/families.h"

#include "base/check.h"
#include "planner/worded_rows.h"

namespace tprimat::planner {
namespace embedded {
extern const std::string_view families_tsv;
}

namespace {

struct Trait {
  std::string_view name;
  bool Family::*member;
};
constexpr Trait k_traits[] = {{"fused_attention", &Family::fused_attention},
                              {"fused_elementwise", &Family::fused_elementwise},
                              {"scattered_transfers", &Family::scattered_transfers},
                              {"balances_ends", &Family::balances_ends},
                              {"fills_stages", &Family::fills_stages},
                              {"narrow_gathers", &Family::narrow_gathers},
                              {"exchanges_tensors", &Family::exchanges_tensors},
                              {"dropout", &Family::dropout},
                              {"fully_sharded", &Family::fully_sharded},
                              {"sharded_optimizer", &Family::sharded_optimizer},
                              {"fp32_gradients", &Family::fp32_gradients},
                              {"overlaps_tensor", &Family::overlaps_tensor},
                              {"operator_recompute", &Family::operator_recompute},
                              {"fused_loss", &Family::fused_loss},
                              {"fp32_shards", &Family::fp32_shards},
                              {"deepspeed_states", &Family::deepspeed_states},
                              {"tensor_parallel", &Family::tensor_parallel},
                              {"pipeline_parallel", &Family::pipeline_parallel},
                              {"context_parallel", &Family::context_parallel},
                              {"interleaves", &Family::interleaves},
                              {"expert_parallel", &Family::expert_parallel},
                              {"expert_tensor", &Family::expert_tensor},
                              {"explicit_stages", &Family::explicit_stages},
                              {"selects_modules", &Family::selects_modules},
                              {"counts_ends", &Family::counts_ends},
                              {"shards_weights", &Family::shards_weights},
                              {"own_trainer", &Family::own_trainer}};

void set_traits(Family& family, std::string_view text) {
  for (const Trait& trait : k_traits) family.*trait.member = false;
  for (const std::string& word : split_words(text, ' ')) {
    bool known = false;
    for (const Trait& trait : k_traits)
      if (trait.name == word) family.*trait.member = known = true;
    CHECK(known);
  }
}

Family parse_family(const TsvRow& row) {
  Family family;
  family.id = row.at("id");
  family.full_name = row.at("name");
  set_traits(family, row.at("traits"));
  const std::string& chunks = row.at("chunks");
  family.chunks = chunks == "layers" ? 0 : static_cast<int64_t>(parse_figure(chunks));
  return family;
}

const WordedRows<Family>& loaded_families() {
  static const WordedRows<Family> loaded(embedded::families_tsv, parse_family);
  return loaded;
}

}  // namespace

const std::vector<Family>& families() { return loaded_families().rows(); }

const Family* find_family(std::string_view name) { return loaded_families().find(name); }

const Family* find_printed_family(std::string_view framework) {
  // tprimat runs on no GPU, and holds Primus' word; "native" is a word of others' names too
  if (fold_name(framework.substr(0, 200)).find("tprimat") != std::string::npos) return nullptr;
  return loaded_families().find_printed(framework, [](const Family& each) { return !each.own_trainer; });
}

}  // namespace tprimat::planner
