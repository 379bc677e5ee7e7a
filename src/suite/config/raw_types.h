#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/schema.h"

// Building blocks of a configuration's sections as written: every value may be absent.
namespace tprimat::suite::raw {

using Text = std::optional<std::string>;
using Whole = std::optional<int64_t>;
using Number = std::optional<double>;
using Flag = std::optional<bool>;
using TextList = std::optional<std::vector<std::string>>;

// Named entries in the order of the file.
template <class T, NameKind kind = NameKind::any>
struct Named {
  static constexpr NameKind name_kind = kind;
  std::vector<std::pair<std::string, T>> entries;

  const T* find(const std::string& name) const {
    for (const auto& [key, value] : entries)
      if (key == name) return &value;
    return nullptr;
  }
  T* find(const std::string& name) { return const_cast<T*>(std::as_const(*this).find(name)); }
};

}  // namespace tprimat::suite::raw
