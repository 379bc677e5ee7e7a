#include "spec/counted_model.h"

#include <map>

#include "base/check.h"
#include "spec/model_catalogue.h"
#include "spec/model_row.h"

namespace tprimat {
namespace embedded {
extern const std::string_view counted_models_tsv;
}

namespace {

// False where the table has no member of that name.
template <class T>
bool set_member(T& object, const std::map<std::string_view, int64_t T::*>& members, std::string_view name,
                int64_t value) {
  const auto found = members.find(name);
  if (found == members.end()) return false;
  object.*(found->second) = value;
  return true;
}

bool set_member(CountedModel& counted, std::string_view name, int64_t value) {
  const std::map<std::string_view, int64_t CountedModel::*> members = {
      {"dense_layers", &CountedModel::dense_layers},
      {"dense_ffn", &CountedModel::dense_ffn},
      {"shared_ffn", &CountedModel::shared_ffn},
      {"unwindowed", &CountedModel::unwindowed_layers},
      {"prediction", &CountedModel::prediction_layers},
      {"latent_expert", &CountedModel::latent_expert_width},
      {"attention_layers", &CountedModel::attention_layers}};
  return set_member(counted, members, name, value);
}

bool set_member(MambaMixers& mixers, std::string_view name, int64_t value) {
  const std::map<std::string_view, int64_t MambaMixers::*> members = {
      {"mamba_layers", &MambaMixers::layers}, {"mamba_width", &MambaMixers::inner_width},
      {"mamba_heads", &MambaMixers::heads},   {"mamba_groups", &MambaMixers::groups},
      {"mamba_state", &MambaMixers::state},   {"mamba_chunk", &MambaMixers::chunk}};
  return set_member(mixers, members, name, value);
}

bool set_member(LatentAttention& attention, std::string_view name, int64_t value) {
  const std::map<std::string_view, int64_t LatentAttention::*> members = {
      {"query_rank", &LatentAttention::query_rank},
      {"key_value_rank", &LatentAttention::key_value_rank},
      {"rope_head_dim", &LatentAttention::rope_head_dim},
      {"value_head_dim", &LatentAttention::value_head_dim}};
  return set_member(attention, members, name, value);
}

// Makes the part where the member is its.
template <class T>
bool set_member_of(std::optional<T>& part, std::string_view name, int64_t value) {
  T changed = part.value_or(T{});
  if (!set_member(changed, name, value)) return false;
  part = changed;
  return true;
}

void apply_extra(CountedModel& counted, std::string_view name, int64_t value) {
  if (set_member(counted, name, value)) return;
  if (name == "shared_prediction") {
    counted.shared_prediction = value != 0;
    return;
  }
  CHECK(set_member_of(counted.mamba, name, value) || set_member_of(counted.latent, name, value));
}

CountedModel parse_counted(const TsvRow& row) {
  CountedModel counted;
  counted.model = parse_model_row(row);
  for (const std::string& word : split_words(row.at("extras"), ' ')) {
    const size_t equals = word.find('=');
    CHECK(equals != std::string::npos);
    apply_extra(counted, std::string_view(word).substr(0, equals),
                static_cast<int64_t>(parse_figure(std::string_view(word).substr(equals + 1))));
  }
  counted.source = row.at("source");
  return counted;
}

struct CountedCatalogue {
  std::vector<CountedModel> models;
  std::map<std::string, size_t> index_of_name;  // folded name
};

CountedCatalogue load_counted() {
  CountedCatalogue catalogue;
  for (const TsvRow& row : parse_tsv_rows(embedded::counted_models_tsv)) {
    const CountedModel& counted = catalogue.models.emplace_back(parse_counted(row));
    std::vector<std::string> names = split_words(row.at("aliases"), '|');
    names.push_back(counted.model.name);
    names.push_back(counted.model.full_name);
    for (const std::string& name : names) {
      const size_t index = catalogue.models.size() - 1;
      CHECK(catalogue.index_of_name.try_emplace(fold_name(name), index).first->second == index);
    }
  }
  return catalogue;
}

const CountedCatalogue& loaded_counted() {
  static const CountedCatalogue loaded = load_counted();
  return loaded;
}

}  // namespace

const std::vector<CountedModel>& counted_models() { return loaded_counted().models; }

std::optional<CountedModel> find_counted_model(std::string_view name) {
  if (const auto known = find_model(name)) return CountedModel{*known};
  const auto found = loaded_counted().index_of_name.find(fold_name(name));
  if (found == loaded_counted().index_of_name.end()) return std::nullopt;
  return loaded_counted().models[found->second];
}

}  // namespace tprimat
