#include "hugging_face/config_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "text/format.h"

namespace tprimat {
namespace {

template <class Value>
Value read_value(const ConfigKeys& keys, const std::string& key, const Value& otherwise, bool (*fits)(const Json&),
                 const char* wanted) {
  const Json* found = keys.find(key);
  if (found != nullptr && fits(*found)) return found->get<Value>();
  if (found != nullptr) keys.wrong(key, wanted);
  return otherwise;
}

// One `rope_scaling` or `rope_parameters` object.
class RopeObject {
 public:
  RopeObject(const Json& object, const std::string& where, const RopeFamily& family, Findings& findings)
      : object_(object), keys_(object, findings), where_(where), family_(family), findings_(findings) {}

  RopeSettings read(double theta) const {
    RopeSettings settings{keys_.number("rope_theta", theta), std::nullopt};
    keys_.require("partial_rotary_factor", 1.0);
    const std::string type = keys_.text("rope_type", keys_.text("type", "default"));
    if (type == "default") return settings;
    const auto kind = parse_enum<RopeScalingKind>(type);
    if (!kind) {
      findings_.require(false,
                        fmt::format("{}: rope_type '{}' is not supported", where_, printable(type.substr(0, 40))),
                        "choose default, " + enum_choices<RopeScalingKind>());
      return settings;
    }
    settings.scaling = read_scaling(*kind);
    return settings;
  }

 private:
  RopeScaling read_scaling(RopeScalingKind kind) const {
    RopeScaling scaling;
    scaling.type = kind;
    findings_.require(keys_.find("factor") != nullptr, where_ + " has no factor");
    scaling.factor = keys_.number("factor", 1.0);
    findings_.require(scaling.factor >= 1.0,
                      fmt::format("{}: factor must be at least 1, got {}", where_, scaling.factor));
    if (kind == RopeScalingKind::linear) {
      check_keys({});
      return scaling;
    }
    scaling.original_max_position_embeddings = keys_.size("original_max_position_embeddings", family_.max_positions);
    kind == RopeScalingKind::llama3 ? read_llama3(scaling) : read_yarn(scaling);
    return scaling;
  }

  void read_llama3(RopeScaling& scaling) const {
    check_keys({"original_max_position_embeddings", "low_freq_factor", "high_freq_factor"});
    for (const char* key : {"low_freq_factor", "high_freq_factor"})
      findings_.require(keys_.find(key) != nullptr, fmt::format("{} has no {}", where_, key));
    scaling.low_freq_factor = keys_.number("low_freq_factor", 1.0);
    scaling.high_freq_factor = keys_.number("high_freq_factor", 4.0);
    findings_.require(scaling.low_freq_factor > 0 && scaling.low_freq_factor < scaling.high_freq_factor,
                      where_ + ": low_freq_factor must be above 0 and below high_freq_factor");
  }

  void read_yarn(RopeScaling& scaling) const {
    check_keys({"original_max_position_embeddings", "beta_fast", "beta_slow", "attention_factor", "truncate",
                family_.latent ? "mscale" : "", family_.latent ? "mscale_all_dim" : ""});
    scaling.beta_fast = keys_.number("beta_fast", 32.0);
    scaling.beta_slow = keys_.number("beta_slow", 1.0);
    findings_.require(scaling.beta_slow > 0 && scaling.beta_slow <= scaling.beta_fast,
                      where_ + ": beta_slow must be above 0 and at most beta_fast");
    if (keys_.flag("truncate", true) != family_.truncate)
      findings_.require(false, fmt::format("{}: truncate must be {} in this family", where_, family_.truncate));
    if (family_.latent) return read_latent_yarn();
    const double usual = 0.1 * std::log(scaling.factor) + 1.0;
    if (std::fabs(keys_.number("attention_factor", usual) - usual) > 1e-6) keys_.refuse("attention_factor");
  }

  // attention_factor is the quotient of both scales.
  void read_latent_yarn() const {
    for (const char* key : {"mscale", "mscale_all_dim"})
      findings_.require(keys_.number(key, 0.0) == 1.0,
                        fmt::format("{}: {} is {}, but with latent attention only 1 is supported", where_, key,
                                    keys_.number(key, 0.0)),
                        "leave rope_scaling out if sequences are no longer than those of the first training");
    keys_.require("attention_factor", 1.0);
  }

  void check_keys(std::initializer_list<std::string_view> known) const {
    constexpr std::string_view k_always[] = {"rope_type", "type", "rope_theta", "factor", "partial_rotary_factor"};
    for (const auto& [key, value] : object_.items())
      if (!value.is_null() && std::find(std::begin(k_always), std::end(k_always), key) == std::end(k_always) &&
          std::find(known.begin(), known.end(), key) == known.end())
        findings_.require(
            false, fmt::format("{}: {} is not supported for this rope_type", where_, printable(key.substr(0, 60))));
  }

  const Json& object_;
  ConfigKeys keys_;
  std::string where_;
  const RopeFamily& family_;
  Findings& findings_;
};

bool is_nested(const Json& object) {
  return std::any_of(object.begin(), object.end(), [](const Json& value) { return value.is_object(); });
}

}  // namespace

const Json* ConfigKeys::find(const std::string& key) const {
  const auto found = object_.find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

void ConfigKeys::wrong(const std::string& key, const std::string& wanted) const {
  findings_.require(false, fmt::format("{} must be {}, got {}", key, wanted,
                                       printable(print_json_line(object_.at(key)).substr(0, 60))));
}

void ConfigKeys::refuse(const std::string& key, const std::string& hint) const {
  findings_.require(
      false,
      fmt::format("{} is {}, which is not supported", key, printable(print_json_line(object_.at(key)).substr(0, 60))),
      hint);
}

int64_t ConfigKeys::size(const std::string& key, std::optional<int64_t> otherwise) const {
  constexpr int64_t k_largest = int64_t{1} << 40;
  const Json* found = find(key);
  if (found == nullptr) {
    findings_.require(otherwise.has_value(), fmt::format("has no {}", key));
    return otherwise.value_or(1);
  }
  if (found->is_number_integer() && found->get<int64_t>() >= 1 && found->get<int64_t>() <= k_largest)
    return found->get<int64_t>();
  wrong(key, "a size of at least 1");
  return 1;
}

int64_t ConfigKeys::count(const std::string& key, int64_t otherwise) const {
  const Json* found = find(key);
  const bool none = found != nullptr && found->is_number_integer() && found->get<int64_t>() == 0;
  return none ? 0 : found == nullptr ? otherwise : size(key);
}

double ConfigKeys::number(const std::string& key, double otherwise) const {
  const auto fits = [](const Json& json) { return json.is_number() && std::isfinite(json.get<double>()); };
  return read_value(*this, key, otherwise, fits, "a number");
}

bool ConfigKeys::flag(const std::string& key, bool otherwise) const {
  return read_value(
      *this, key, otherwise, [](const Json& json) { return json.is_boolean(); }, "true or false");
}

std::string ConfigKeys::text(const std::string& key, const std::string& otherwise) const {
  return read_value(
      *this, key, otherwise, [](const Json& json) { return json.is_string(); }, "a string");
}

RopeSettings read_rope_settings(const Json& config, const RopeFamily& family, Findings& findings) {
  const ConfigKeys keys(config, findings);
  keys.require("partial_rotary_factor", 1.0);
  std::optional<RopeSettings> settings;
  const double theta = keys.number("rope_theta", family.theta);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* object = keys.find(key);
    if (object == nullptr) continue;
    if (!object->is_object() || is_nested(*object)) {
      keys.wrong(key, "one object for all layers");
      continue;
    }
    const RopeSettings read = RopeObject(*object, key, family, findings).read(theta);
    findings.require(!settings || (settings->theta == read.theta && settings->scaling == read.scaling),
                     "rope_scaling and rope_parameters do not agree", "keep one of them");
    settings = read;
  }
  return settings.value_or(RopeSettings{theta, std::nullopt});
}

void write_rope_settings(const ModelSpec& model, Json& config) {
  Json parameters{{"rope_type", "default"}};
  if (model.rope_scaling) {
    const RopeScaling& scaling = *model.rope_scaling;
    parameters = {{"rope_type", enum_name(scaling.type)}, {"factor", scaling.factor}};
    if (scaling.type != RopeScalingKind::linear)
      parameters["original_max_position_embeddings"] = scaling.original_max_position_embeddings;
    if (scaling.type == RopeScalingKind::llama3) {
      parameters["low_freq_factor"] = scaling.low_freq_factor;
      parameters["high_freq_factor"] = scaling.high_freq_factor;
    }
    if (scaling.type == RopeScalingKind::yarn) {
      parameters["beta_fast"] = scaling.beta_fast;
      parameters["beta_slow"] = scaling.beta_slow;
      if (model.latent_attention) parameters["mscale"] = parameters["mscale_all_dim"] = 1.0;
    }
    config["rope_scaling"] = parameters;
  }
  config["rope_theta"] = model.rope_theta;
  parameters["rope_theta"] = model.rope_theta;
  config["rope_parameters"] = parameters;
}

}  // namespace tprimat
