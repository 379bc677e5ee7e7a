#include "config/counted_models.h"

#include <fmt/format.h>

#include "base/error.h"
#include "spec/model_catalogue.h"
#include "text/format.h"

namespace tprimat::suite {

CountedModel require_counted(const Experiment& experiment, const std::string& name, const std::string& place) {
  if (const ModelEntry* entry = experiment.find_model_entry(name)) return {entry->spec};
  if (auto counted = find_counted_model(name)) return *counted;
  std::vector<std::string> names;
  for (const ModelEntry& entry : experiment.models) names.push_back(entry.spec.name);
  for (const KnownModel& known : model_catalogue()) names.push_back(known.spec.name);
  for (const CountedModel& counted : counted_models()) names.push_back(counted.model.name);
  const std::string near = nearest_word(name.substr(0, 64), names);
  throw Error(Problem{fmt::format("neither the configuration nor the catalogue has a model '{}'", name.substr(0, 64)),
                      place,
                      near.empty() ? "docs/models.md lists the catalogue" : fmt::format("did you mean '{}'?", near)});
}

}  // namespace tprimat::suite
