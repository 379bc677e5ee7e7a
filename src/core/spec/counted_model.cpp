#include "spec/counted_model.h"

#include <map>

#include "base/check.h"
#include "spec/model_catalogue.h"

namespace tprimat {
namespace embedded {
extern const std::string_view counted_models_tsv;
}

namespace {

template <class T>
using Members = std::map<std::string_view, int64_t T::*>;

const Members<CountedModel> k_own_members = {{"dense_layers", &CountedModel::dense_layers},
                                             {"dense_ffn", &CountedModel::dense_ffn},
                                             {"shared_ffn", &CountedModel::shared_ffn},
                                             {"unwindowed", &CountedModel::unwindowed_layers},
                                             {"prediction", &CountedModel::prediction_layers},
                                             {"latent_expert", &CountedModel::latent_expert_width},
                                             {"attention_layers", &CountedModel::attention_layers}};
const Members<MambaMixers> k_mamba_members = {
    {"mamba_layers", &MambaMixers::layers}, {"mamba_width", &MambaMixers::inner_width},
    {"mamba_heads", &MambaMixers::heads},   {"mamba_groups", &MambaMixers::groups},
    {"mamba_state", &MambaMixers::state},   {"mamba_chunk", &MambaMixers::chunk}};
const Members<LatentAttention> k_latent_members = {{"query_rank", &LatentAttention::query_rank},
                                                   {"key_value_rank", &LatentAttention::key_value_rank},
                                                   {"rope_head_dim", &LatentAttention::rope_head_dim},
                                                   {"value_head_dim", &LatentAttention::value_head_dim}};

// False where the part has no member of that name; makes the part where it has.
template <class T>
bool set_member(std::optional<T>& part, const Members<T>& members, std::string_view name, int64_t value) {
  const auto found = members.find(name);
  if (found == members.end()) return false;
  if (!part) part.emplace();
  *part.*found->second = value;
  return true;
}

void apply_extra(CountedModel& counted, std::string_view name, int64_t value) {
  if (name == "shared_prediction") {
    counted.shared_prediction = value != 0;
  } else if (const auto own = k_own_members.find(name); own != k_own_members.end()) {
    counted.*own->second = value;
  } else {
    CHECK(set_member(counted.mamba, k_mamba_members, name, value) ||
          set_member(counted.latent, k_latent_members, name, value));
  }
}

CountedModel parse_counted(const TsvRow& row) {
  CountedModel counted;
  counted.model = parse_model_row(row);
  for (const std::string& word : split_words(row.at("extras"), ' ')) {
    const auto [name, value] = split_setting(word);
    apply_extra(counted, name, static_cast<int64_t>(parse_figure(value)));
  }
  counted.source = row.at("source");
  return counted;
}

const NamedRows<CountedModel>& loaded_counted() {
  static const NamedRows<CountedModel> loaded(embedded::counted_models_tsv, parse_counted, "key", "aliases");
  return loaded;
}

}  // namespace

const std::vector<CountedModel>& counted_models() { return loaded_counted().rows(); }

std::optional<CountedModel> find_counted_model(std::string_view name) {
  if (const auto known = find_model(name)) return CountedModel{*known};
  const CountedModel* found = loaded_counted().find(name);
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

}  // namespace tprimat
