#include "config/diagnosis.h"

#include <algorithm>

namespace tprimat::suite {
namespace {

// "a.b" holds "a.b" and "a.b.c", but not "a.bc".
bool holds(std::string_view outer, std::string_view inner) {
  return inner.starts_with(outer) && (inner.size() == outer.size() || outer.empty() || inner[outer.size()] == '.');
}

}  // namespace

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
