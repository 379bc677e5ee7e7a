#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tprimat::results {

// Finds names in an archive by the original paths of the files.
class SealedNames {
 public:
  void add(const std::string& name);

  // "/data/output/runs/x/steps.jsonl" was sealed as "output/runs/x/steps.jsonl": the name with the same end as the
  // path; of several the one nearest to `beside`. If both have folders, the last one must agree. Nothing if no name
  // fits, or two fit equally.
  std::optional<std::string> find(const std::string& path, const std::string& beside) const;

  // The file of this name nearest to `beside` that `may_be` accepts, since whole folders are renamed and copied.
  // Nothing in case of a tie.
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
