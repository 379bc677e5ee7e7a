#include "extract/unknown_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "result/summary.h"
#include "spec/hardware_catalogue.h"
#include "spec/model_catalogue.h"
#include "text/format.h"

namespace tprimat::logs {
namespace {

std::string suggest_catalogued(const std::string& name, const std::vector<std::string>& names) {
  const std::string near = nearest_word(name, names);
  return near.empty() ? "" : fmt::format("; did you mean {}?", near);
}

// "A100" is several parts, "H1000" a slip.
std::string suggest_device(const std::string& name) {
  std::vector<std::string> parts, names;
  for (const HardwareSpec& part : hardware_catalogue()) {
    if (part.id.starts_with(name + "-")) parts.push_back(part.id);
    names.insert(names.end(), part.device_names.begin(), part.device_names.end());
  }
  return parts.empty() ? suggest_catalogued(name, names) : fmt::format("; did you mean {}?", join(parts, " or "));
}

}  // namespace

void warn_about_unknown_names(RunResult& result, const KnownFacts& known) {
  const bool is_gpu = result.platform != Platform::cpu;
  if (is_gpu && !known.device.empty() && !result.derived.peak && !find_hardware(known.device))
    add_warning(result, fmt::format("no device of the catalogue is called {}: no peak, no MFU{}", known.device,
                                    suggest_device(known.device)));
  if (!known.model.empty() && !result.model_info.shape && !find_model(known.model)) {
    std::vector<std::string> names;
    for (const KnownModel& model : model_catalogue()) names.push_back(model.spec.full_name);
    add_warning(result, fmt::format("no model of the catalogue is called {}: no shape, no MFU{}", known.model,
                                    suggest_catalogued(known.model, names)));
  }
}

}  // namespace tprimat::logs
