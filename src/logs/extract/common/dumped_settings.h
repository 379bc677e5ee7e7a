#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tprimat::logs {

// A configuration dump by any of the names that frameworks give a setting; NeMo and Megatron-Bridge add "model.".
// "None" and "null" count as absent, but for has().
class DumpedSettings {
 public:
  using Names = std::initializer_list<const char*>;
  explicit DumpedSettings(const std::map<std::string, std::string>& settings) : settings_(settings) {}

  std::string_view word(Names names) const;         // of the first name with a value; "" without one
  std::optional<int64_t> whole(Names names) const;  // 1 or more
  std::optional<double> number(Names names) const;  // finite; of a list of one its entry
  bool is_true(Names names) const;
  bool has(const char* name) const { return find(name) != nullptr; }
  bool has_any(Names names) const;

  // The model_type of a Hugging Face config, "mixtral"; "" for other dumps, where the name means other things.
  std::string_view family() const;

 private:
  const std::string* find(const std::string& name) const;

  const std::map<std::string, std::string>& settings_;
};

}  // namespace tprimat::logs
