#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tprimat {

// The names in an archive, to be found by the paths that the same files had where they were made.
class SealedNames {
 public:
  void add(const std::string& name);

  // "/data/output/runs/x/steps.jsonl" was sealed as "output/runs/x/steps.jsonl": the name whose end is that of the
  // path, of several the one nearest to `beside`. A name and a path that have folders must share the last of them.
  // Nothing where no name fits, or two fit as well.
  std::optional<std::string> find(const std::string& path, const std::string& beside) const;
  bool holds(const std::string& name) const;

 private:
  std::map<std::string, std::vector<std::string>> by_file_name_;
};

}  // namespace tprimat
