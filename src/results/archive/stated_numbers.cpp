#include "archive/stated_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "archive/redactor.h"

namespace tprimat::results {
namespace {

std::string show_json(const Json& value) { return value.is_number() ? print_json_line(value) : "nothing"; }

bool is_interval(const std::string& key) { return key == "ci95_low" || key == "ci95_high"; }

bool holds_numbers(const Json& list) {
  return std::any_of(list.begin(), list.end(),
                     [](const Json& each) { return each.is_number() || each.is_structured(); });
}

void check_number(const NumberPlace& place, const Json& stated, const Json& derived, Verification& found) {
  ++found.numbers;
  if (!stated.is_number() || !derived.is_number() || !is_same_number(stated, derived))
    found.broken.push_back({place.file, place.where, show_json(stated), show_json(derived), place.witness});
}

NumberPlace within(const NumberPlace& place, const std::string& part) {
  return {place.file, place.where + part, place.skip_intervals, place.witness};
}

void check_list(const NumberPlace& place, const Json& stated, const Json& derived, Verification& found) {
  if (!derived.is_array() || stated.size() != derived.size()) {
    if (holds_numbers(stated) || holds_numbers(derived))
      found.broken.push_back({place.file, place.where, fmt::format("{} entries", stated.size()),
                              derived.is_array() ? fmt::format("{} entries", derived.size()) : "nothing",
                              place.witness});
    return;
  }
  for (size_t i = 0; i < stated.size(); ++i) {
    const NumberPlace entry = within(place, fmt::format("[{}]", i));
    if (stated[i].is_structured())
      check_numbers(entry, stated[i], derived[i], found);
    else if (stated[i].is_number() || derived[i].is_number())
      check_number(entry, stated[i], derived[i], found);
  }
}

}  // namespace

bool is_same_figure(double stated, double derived) {
  constexpr double k_tolerance = 1e-6;
  if (!std::isfinite(stated) || !std::isfinite(derived)) return !std::isfinite(stated) && !std::isfinite(derived);
  return std::fabs(stated - derived) <= k_tolerance * std::max(std::fabs(stated), std::fabs(derived));
}

bool is_same_number(const Json& stated, const Json& derived) {
  if (stated.is_number_integer() && derived.is_number_integer()) return stated == derived;
  if (derived.is_number_integer()) return stated.get<double>() == derived.get<double>();
  return is_same_figure(stated.get<double>(), derived.get<double>());
}

bool is_hidden(const Json& value) {
  return value.is_string() && value.text().find(k_hidden_secret) != std::string::npos;
}

std::string show_word(const Json& value) {
  if (value.is_null()) return "nothing";
  return print_json_bare(value);
}

std::string show_figure(double figure) { return std::isfinite(figure) ? fmt::format("{}", figure) : "no number"; }

void check_numbers(const NumberPlace& place, const Json& stated, const Json& derived, Verification& found) {
  if (stated.is_object()) {
    for (const auto& [key, value] : stated.items()) {
      if (place.skip_intervals && is_interval(key)) continue;
      const bool is_derived = derived.is_object() && derived.contains(key);
      check_numbers(within(place, "." + key), value, is_derived ? derived[key] : Json(), found);
    }
  } else if (stated.is_array()) {
    check_list(place, stated, derived, found);
  } else if (stated.is_number()) {
    check_number(place, stated, derived, found);
  }
}

void check_words(const NumberPlace& place, const Json& stated, const Json& derived, Silence silence,
                 Verification& found) {
  if (stated.is_object()) {
    for (const auto& [key, value] : stated.items()) {
      const bool is_derived = derived.is_object() && derived.contains(key);
      check_words(within(place, "." + key), value, is_derived ? derived[key] : Json(), silence, found);
    }
  } else if (stated.is_array()) {
    for (size_t i = 0; derived.is_array() && i < stated.size(); ++i)
      check_words(within(place, fmt::format("[{}]", i)), stated[i], i < derived.size() ? derived[i] : Json(), silence,
                  found);
  } else if (stated.is_string() || stated.is_boolean()) {
    if (stated == derived || (derived.is_null() && silence == Silence::allows)) return;
    if (is_hidden(stated) && (derived.is_null() || is_hidden(derived))) return;
    found.broken.push_back({place.file, place.where, show_word(stated), show_word(derived), place.witness});
  }
}

}  // namespace tprimat::results
