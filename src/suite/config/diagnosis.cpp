#include "config/diagnosis.h"

#include <algorithm>

namespace tprimat::suite {
namespace {

// "a.b" holds "a.b" and "a.b.c", but not "a.bc".
bool holds(std::string_view outer, std::string_view inner) {
  return inner.starts_with(outer) && (inner.size() == outer.size() || outer.empty() || inner[outer.size()] == '.');
}

// "config.yaml:270:9" and "config.yaml:275:9" to "config.yaml:270:9, 275:9".
void append_place(std::string& places, const std::string& place) {
  const size_t column = place.rfind(':');
  const size_t line = column == std::string::npos || column == 0 ? column : place.rfind(':', column - 1);
  const bool is_same_file = line != std::string::npos && places.starts_with(place.substr(0, line + 1));
  places += ", " + (is_same_file ? place.substr(line + 1) : place);
}

}  // namespace

void Diagnosis::add_remark(const Remark& remark) {
  const auto [known, is_first] = remarks_.try_emplace(remark.what, warnings_.size());
  if (is_first) return add_warning({remark.what + ": " + remark.detail, remark.where, remark.hint});
  Problem& warning = warnings_[known->second];
  warning.what += "; " + remark.detail;
  append_place(warning.where, remark.where);
  if (warning.hint.find(remark.hint) == std::string::npos) warning.hint += "; " + remark.hint;
}

void Diagnosis::add_error(Problem problem, const std::string& wrong_path) {
  errors_.push_back(std::move(problem));
  wrong_paths_.push_back(wrong_path);
}

bool Diagnosis::is_sound(std::string_view path) const {
  return std::none_of(wrong_paths_.begin(), wrong_paths_.end(),
                      [&](const std::string& wrong) { return holds(wrong, path) || holds(path, wrong); });
}

bool Diagnosis::are_sound(std::initializer_list<std::string_view> paths) const {
  return std::all_of(paths.begin(), paths.end(), [&](std::string_view path) { return is_sound(path); });
}

}  // namespace tprimat::suite
