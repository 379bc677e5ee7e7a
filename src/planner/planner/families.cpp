#include "planner/families.h"

#include "base/check.h"
#include "spec/tsv_rows.h"

namespace tprimat::planner {
namespace embedded {
extern const std::string_view families_tsv;
}

namespace {

struct NamedFamily {
  Family family;
  std::vector<std::string> words;  // folded
};

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

NamedFamily parse_family(const TsvRow& row) {
  NamedFamily named;
  named.family.id = row.at("id");
  named.family.full_name = row.at("name");
  set_traits(named.family, row.at("traits"));
  const std::string& chunks = row.at("chunks");
  named.family.chunks = chunks == "layers" ? 0 : static_cast<int64_t>(parse_figure(chunks));
  named.words.push_back(fold_name(named.family.id));
  for (const std::string& word : split_words(row.at("words"), '|')) named.words.push_back(fold_name(word));
  return named;
}

const std::vector<NamedFamily>& named_families() {
  static const std::vector<NamedFamily> loaded = [] {
    std::vector<NamedFamily> all;
    for (const TsvRow& row : parse_tsv_rows(embedded::families_tsv)) all.push_back(parse_family(row));
    return all;
  }();
  return loaded;
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> all = [] {
    std::vector<Family> list;
    for (const NamedFamily& named : named_families()) list.push_back(named.family);
    return list;
  }();
  return all;
}

const Family* find_family(std::string_view name) {
  const std::string folded = fold_name(name.substr(0, 200));
  for (size_t i = 0; i < named_families().size(); ++i)
    for (const std::string& word : named_families()[i].words)
      if (word == folded) return &families()[i];
  return nullptr;
}

const Family* find_printed_family(std::string_view framework) {
  const std::string folded = fold_name(framework.substr(0, 200));
  if (folded.find("tprimat") != std::string::npos) return nullptr;  // which runs on no GPU, and holds Primus' word
  size_t best = 0, longest = 0;
  for (size_t i = 0; i < named_families().size(); ++i) {
    if (families()[i].own_trainer) continue;  // "native" is a word of others' names too
    for (const std::string& word : named_families()[i].words)
      if (word.size() > longest && folded.find(word) != std::string::npos) best = i, longest = word.size();
  }
  return longest > 0 ? &families()[best] : nullptr;
}

}  // namespace tprimat::planner
