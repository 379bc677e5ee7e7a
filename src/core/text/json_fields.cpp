#include "text/json_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace tprimat::json_detail {

std::string Place::text() const {
  if (outer == nullptr) return std::string(name);
  return name.data() == nullptr ? fmt::format("{}[{}]", outer->text(), index)
                                : fmt::format("{}.{}", outer->text(), name);
}

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

void reject(const Json& json, const Place& place, std::string_view wanted) {
  throw Error(
      Problem{fmt::format("must be {}, got {}", wanted, print_json_line(json).substr(0, 60)), place.text(), ""});
}

void require(bool is_right, const Json& json, const Place& place, std::string_view wanted) {
  if (!is_right) reject(json, place, wanted);
}

void read_bool(const Json& json, const Place& place, bool& value) {
  require(json.is_boolean(), json, place, "true or false");
  value = json.get<bool>();
}

void read_number(const Json& json, const Place& place, double& value) {
  require(json.is_null() || json.is_number(), json, place, "a number");
  value = json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

int64_t read_whole(const Json& json, const Place& place) {
  constexpr double k_max_exact = 9e15;  // below 2^53
  if (json.is_number_float() && json.get<double>() == std::floor(json.get<double>()) &&
      std::fabs(json.get<double>()) < k_max_exact)
    return static_cast<int64_t>(json.get<double>());
  require(json.is_number_integer(), json, place, "a whole number");
  return json.get<int64_t>();
}

void read_text(const Json& json, const Place& place, std::string& value) {
  require(json.is_string(), json, place, "a string");
  value = json.text();
}

namespace {

// "... [with T = tprimat::GroupedRate<tprimat::Measured>; ...]" -> "GroupedRateMeasured".
std::string read_type(std::string_view function) {
  function.remove_prefix(function.find("T = ") + 4);
  std::string name;
  size_t word = 0;  // where the part behind the last :: began
  for (const char c : function.substr(0, function.find_first_of(";]"))) {
    if (c == ':')
      name.resize(word);
    else if (c == '<' || c == '>' || c == ' ' || c == ',')
      word = name.size();
    else
      name += c;
  }
  return name;
}

}  // namespace

Json object_schema(std::string_view function, Json&& properties, Json&& required) {
  return Json{{"title", read_type(function)},
              {"type", "object"},
              {"properties", std::move(properties)},
              {"required", std::move(required)}};
}

Json nullable_schema(Json&& schema) { return Json{{"anyOf", Json::array({std::move(schema), leaf_schema("null")})}}; }

Json leaf_schema(const char* type) { return Json{{"type", type}}; }

void describe(Json& properties, std::string_view key, std::string_view doc, Json&& schema) {
  schema["description"] = std::string(doc);
  properties[key] = std::move(schema);
}

}  // namespace tprimat::json_detail
