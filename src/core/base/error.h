#pragma once

#include <exception>
#include <string>
#include <vector>

#include "base/exit_status.h"

namespace tprimat {

// One thing that is wrong, as a sentence for the person who can mend it.
struct Problem {
  std::string what;   // "learning_rate must be positive, got -1"
  std::string where;  // "config.yaml:12:5", "--steps", "key training.data"; empty when there is no place
  std::string hint;   // how to mend it; empty when the sentence says it all
};

// "where: what\n  hint"
std::string to_string(const Problem& problem);

// Thrown for what the user or the machine did. Our own bugs are CHECKs (base/check.h), normal absence
// is std::optional. Holds one problem or, for a file that is read whole, all of them.
class Error : public std::exception {
 public:
  explicit Error(Problem problem, ExitStatus status = ExitStatus::usage);
  explicit Error(std::vector<Problem> problems, ExitStatus status = ExitStatus::usage);

  const char* what() const noexcept override { return text_.c_str(); }
  const std::vector<Problem>& problems() const { return problems_; }
  ExitStatus status() const { return status_; }

 private:
  std::vector<Problem> problems_;
  ExitStatus status_;
  std::string text_;
};

// Throws all of them together; nothing where there are none.
void throw_if_any(std::vector<Problem> problems);

}  // namespace tprimat
