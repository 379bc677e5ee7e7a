#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tprimat::results {

// The names in an archive, to be found by the paths that the same files had where they were made.
class SealedNames {
 public:
  void add(const std::string& name);

  // "/data/output/runs/x/steps.jsonl" was sealed as "output/runs/x/steps.jsonl": the name whose end is that of the
  // path, of several the one nearest to `beside`. A name and a path that have folders must share the last of them.
  // Nothing where no name fits, or two fit as well.
  std::optional<std::string> find(const std::string& path, const std::string& beside) const;

  // The file of this name nearest to `beside`, of those that `may_be` accepts: whole folders are renamed and copied.
  // Nothing where two are as near.
  std::optional<std::string> find_by_name(const std::string& path, const std::string& beside,
                                          const std::function<bool(const std::string&)>& may_be) const;
  bool holds(const std::string& name) const { return names_.contains(name); }

 private:
  struct SealedName {
    std::string name;
    std::vector<std::string> parts;
  };
  std::vector<const SealedName*> find_candidates(const std::vector<std::string>& wanted) const;

  std::map<std::string, SealedName> names_;
  std::map<std::string, std::vector<const SealedName*>> by_file_name_,
      by_end_;  // by_end_: "runs.json", "x/steps.jsonl"
};

}  // namespace tprimat::results
