#include "archive/witnesses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "archive/redactor.h"

namespace tprimat::results {
namespace {

std::string show_number(const Json& value) { return value.is_number() ? print_json_line(value) : "nothing"; }

bool is_interval(const std::string& key) { return key == "ci95_low" || key == "ci95_high"; }

bool holds_numbers(const Json& list) {
  return std::ranges::any_of(list, [](const Json& each) { return each.is_number() || each.is_structured(); });
}

void check_number(const ResultCheck& check, const std::string& where, const Json& stated, const Json& derived) {
  ++check.found.numbers;
  if (!stated.is_number() || !derived.is_number() || !is_same_number(stated, derived))
    check.refute(where, show_number(stated), show_number(derived));
}

void check_list(const ResultCheck& check, const std::string& where, const Json& stated, const Json& derived) {
  if (!derived.is_array() || stated.size() != derived.size()) {
    if (holds_numbers(stated) || holds_numbers(derived))
      check.refute(where, fmt::format("{} entries", stated.size()),
                   derived.is_array() ? fmt::format("{} entries", derived.size()) : "nothing");
    return;
  }
  for (size_t i = 0; i < stated.size(); ++i) {
    const std::string entry = fmt::format("{}[{}]", where, i);
    if (stated[i].is_structured())
      check_numbers(check, entry, stated[i], derived[i]);
    else if (stated[i].is_number() || derived[i].is_number())
      check_number(check, entry, stated[i], derived[i]);
  }
}

template <class Word>
std::string show_choice(const std::optional<Word>& word) {
  return word ? std::string(enum_name(*word)) : "nothing";
}

// Early versions stored the sizes of experts in the shape itself, and nothing of routing.
bool is_before_routing(const Json& stored) {
  const Json info = stored.value("model_info", Json());
  const Json shape = info.is_object() ? info.value("shape", Json()) : Json();
  return shape.is_object() && shape.contains("num_experts");
}

}  // namespace

void ResultCheck::refute(const std::string& what, const std::string& stated, const std::string& follows) const {
  found.broken.push_back({result.file, what, stated, follows, witness});
}

void ResultCheck::compare(const std::string& what, const std::string& stated, const std::string& follows) const {
  ++found.facts;
  if (stated != follows) refute(what, stated, follows);
}

const AuditEntry* find_audited(const RunResult& run, std::string_view key) {
  const auto found = std::ranges::find_if(run.config_audit, [&](const AuditEntry& each) { return each.key == key; });
  return found == run.config_audit.end() ? nullptr : &*found;
}

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

std::string show_word(const Json& value) { return value.is_null() ? "nothing" : print_json_bare(value); }

std::string show_figure(double figure) { return std::isfinite(figure) ? fmt::format("{}", figure) : "no number"; }

void check_numbers(const ResultCheck& check, const std::string& where, const Json& stated, const Json& derived) {
  if (stated.is_array()) return check_list(check, where, stated, derived);
  if (stated.is_number()) return check_number(check, where, stated, derived);
  for (const auto& [key, value] : stated.items())
    if (!check.result.skip_intervals || !is_interval(key))
      check_numbers(check, where + "." + key, value, derived.value(key, {}));
}

void check_routing(const ResultCheck& check, const ExpertFigures& told) {
  const ExpertFigures stated = check.result.read.experts.value_or(ExpertFigures{});
  const bool may_omit = is_before_routing(check.result.stored);
  const auto compare = [&](const char* what, const auto& word, const auto& told_word) {
    const bool is_silent = !word && (!told_word || may_omit);
    if (!is_silent) check.compare(what, show_choice(word), show_choice(told_word));
  };
  compare("experts.routing", stated.routing, told.routing);
  compare("experts.dispatcher", stated.dispatcher, told.dispatcher);
}

void check_words(const ResultCheck& check, const std::string& where, const Json& stated, const Json& derived,
                 Silence silence) {
  for (const auto& [key, value] : stated.items())
    check_words(check, where + "." + key, value, derived.value(key, {}), silence);
  if (stated.is_array())
    for (size_t i = 0; derived.is_array() && i < stated.size(); ++i)
      check_words(check, fmt::format("{}[{}]", where, i), stated[i], i < derived.size() ? derived[i] : Json(), silence);
  if (!stated.is_string() && !stated.is_boolean()) return;
  if (stated == derived || (derived.is_null() && silence == Silence::allows)) return;
  if (is_hidden(stated) && (derived.is_null() || is_hidden(derived))) return;
  check.refute(where, show_word(stated), show_word(derived));
}

}  // namespace tprimat::results
