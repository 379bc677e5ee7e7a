#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/workload.h"

namespace tprimat::planner {

// What a program usually sets for a model, where a published row and its recipe do not say it: one row of
// src/planner/planner/usual_settings.tsv.
struct UsualSettings {
  std::string program, since, source;
  std::vector<std::string> models, gpus;
  std::optional<Routing> routing;                         // of the rows that it is about; absent: of all
  std::map<std::string, std::string, std::less<>> facts;  // "dispatcher" -> "deepep"; "overlap" -> ""

  bool states(std::string_view fact) const { return facts.contains(fact); }
  std::string_view fact(std::string_view name) const;         // empty where it states none
  std::optional<int64_t> count(std::string_view name) const;  // of a layout
};
const std::vector<UsualSettings>& usual_settings();

// Of what a row says.
struct SettingsQuestion {
  std::string framework;  // as printed
  std::string model;      // key
  std::string gpu;        // id of the machine
  std::string release;    // "26.04.01"; empty: not known, then the newest ones hold
  std::optional<Routing> routing;
};
// Nothing where none are known.
const UsualSettings* find_usual_settings(const SettingsQuestion& question);

// Releases that are dates in order: 260401 for "26.04.01"; 0 for others.
int64_t release_number(std::string_view release);

}  // namespace tprimat::planner
