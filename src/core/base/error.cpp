#include "base/error.h"

#include <utility>

#include "base/check.h"
#include "base/printable.h"

namespace tprimat {

std::string to_string(const Problem& problem) {
  const std::string what = printable(problem.what), where = printable(problem.where);  // each on its one line
  std::string text = where.empty() ? what : where + ": " + what;
  if (!problem.hint.empty()) text += "\n  " + problem.hint;
  return text;
}

Error::Error(Problem problem, ExitStatus status) : Error(std::vector{std::move(problem)}, status) {}

Error::Error(std::vector<Problem> problems, ExitStatus status) : problems_(std::move(problems)), status_(status) {
  CHECK(!problems_.empty());
  for (const Problem& problem : problems_) {
    if (!text_.empty()) text_ += '\n';
    text_ += to_string(problem);
  }
}

void throw_if_any(std::vector<Problem> problems) {
  if (!problems.empty()) throw Error(std::move(problems));
}

}  // namespace tprimat
