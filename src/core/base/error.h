#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace tprimat {

// Exit statuses. Documented in docs/cli.md; one list for every command.
enum class ExitStatus {
  done = 0,
  work_failed = 1,        // some work failed, or a result is invalid (named)
  usage = 2,              // wrong usage or configuration; nothing was started
  not_comparable = 3,     // compared, but the runs are not comparable
  missing_component = 4,  // a required component is missing (named, with the command that installs it)
  gate_failed = 5,        // a regression gate failed
  inconclusive = 6,       // the difference is within the noise and the question asked for an answer
  interrupted = 130,      // stopped by Ctrl-C
};

// One problem, as a sentence for the person who can fix it.
struct Problem {
  std::string what;   // "learning_rate must be positive, got -1"
  std::string where;  // "config.yaml:12:5", "--steps", "key training.data"; may be empty
  std::string hint;   // how to fix it; may be empty
};

// "where: what\n  hint"
std::string to_string(const Problem& problem);

// Thrown for faults of the user or the machine. Our own bugs are CHECKs (base/check.h), normal absence is
// std::optional. Holds one problem or, for a whole file, all of its problems.
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

// Collects the problems that many rules find in one value.
class Findings {
 public:
  explicit Findings(std::string where) : where_(std::move(where)) {}

  void require(bool sound, std::string what, std::string hint = "") {
    if (!sound) problems_.push_back({std::move(what), where_, std::move(hint)});
  }
  void add(const std::vector<Problem>& problems) {
    problems_.insert(problems_.end(), problems.begin(), problems.end());
  }
  bool empty() const { return problems_.empty(); }
  std::vector<Problem> take() { return std::move(problems_); }

 private:
  std::string where_;
  std::vector<Problem> problems_;
};

}  // namespace tprimat
