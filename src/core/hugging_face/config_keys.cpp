#include "hugging_face/config_keys.h"

#include <fmt/format.h>

#include <cmath>

#include "text/format.h"

namespace tprimat {

const Json* ConfigKeys::find(const std::string& key) const {
  const auto found = object_.find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

void ConfigKeys::wrong(const std::string& key, const std::string& wanted) const {
  findings_.require(false, fmt::format("{} must be {}, got {}", key, wanted,
                                       printable(print_json_line(object_.at(key)).substr(0, 60))));
}

void ConfigKeys::refuse(const std::string& key, const std::string& hint) const {
  findings_.require(false,
                    fmt::format("{} is {}, which the native trainer does not compute", key,
                                printable(print_json_line(object_.at(key)).substr(0, 60))),
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

double ConfigKeys::number(const std::string& key, double otherwise) const {
  const Json* found = find(key);
  if (found == nullptr) return otherwise;
  if (found->is_number() && std::isfinite(found->get<double>())) return found->get<double>();
  wrong(key, "a number");
  return otherwise;
}

bool ConfigKeys::flag(const std::string& key, bool otherwise) const {
  const Json* found = find(key);
  if (found == nullptr) return otherwise;
  if (found->is_boolean()) return found->get<bool>();
  wrong(key, "true or false");
  return otherwise;
}

std::string ConfigKeys::text(const std::string& key, const std::string& otherwise) const {
  const Json* found = find(key);
  if (found == nullptr) return otherwise;
  if (found->is_string()) return found->get<std::string>();
  wrong(key, "a text");
  return otherwise;
}

}  // namespace tprimat
