#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "spec/model_spec.h"
#include "text/json.h"

namespace tprimat {

// Reads keys of a config.json one by one and collects the problems. A null key counts as absent.
class ConfigKeys {
 public:
  ConfigKeys(const Json& object, Findings& findings) : object_(object), findings_(findings) {}

  const Json* find(const std::string& key) const;
  bool names(const std::string& key) const { return object_.contains(key); }  // null or not

  int64_t size(const std::string& key, std::optional<int64_t> otherwise = std::nullopt) const;  // at least 1
  int64_t count(const std::string& key, int64_t otherwise) const;                               // at least 0
  double number(const std::string& key, double otherwise) const;
  bool flag(const std::string& key, bool otherwise) const;
  std::string text(const std::string& key, const std::string& otherwise) const;

  // Requires that the key, if present, has the one value that we support.
  template <class Value>
  void require(const std::string& key, const Value& supported, const std::string& hint = "") const {
    const Json* found = find(key);
    if (found != nullptr && *found != Json(supported)) refuse(key, hint);
  }
  void refuse(const std::string& key, const std::string& hint = "") const;
  void wrong(const std::string& key, const std::string& wanted) const;

 private:
  const Json& object_;
  Findings& findings_;
};

struct RopeSettings {
  double theta = 10000.0;
  std::optional<RopeScaling> scaling;
};

// What a family has where the file is silent, and its own form of yarn: with latent attention the whole score is scaled
// (mscale and mscale_all_dim are 1) instead of the rotary part; gpt-oss rounds no frequency (truncate).
struct RopeFamily {
  int64_t max_positions = 2048;  // of the family or the file
  double theta = 10000.0;
  bool latent = false;
  bool truncate = true;
};

// Rotary positions in a config.json: `rope_theta` and `rope_scaling` of transformers 4, or `rope_parameters` of
// transformers 5.
RopeSettings read_rope_settings(const Json& config, const RopeFamily& family, Findings& findings);

// Puts both forms into a config.
void write_rope_settings(const ModelSpec& model, Json& config);

}  // namespace tprimat
