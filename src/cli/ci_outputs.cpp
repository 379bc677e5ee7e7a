#include "cli/ci_outputs.h"

#include <unistd.h>

#include <array>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/output.h"
#include "report/ci_report.h"

namespace tprimat::cli {
namespace {

results::JUnitStamp make_stamp() {
  std::array<char, 256> name{};
  const bool known = ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0';
  std::string now = utc_timestamp();
  if (now.ends_with('Z')) now.pop_back();  // the schema allows no time zone
  return {now, known ? name.data() : "localhost"};
}

}  // namespace

// Workflow commands are read from both streams; stderr leaves the report on stdout whole.
void write_ci_outputs(const results::Comparison& comparison, const CiOutputs& outputs) {
  if (!outputs.junit_path.empty())
    write_file_atomically(outputs.junit_path, results::render_junit(comparison, make_stamp()));
  if (!outputs.annotations) return;
  if (!write_stderr(results::render_annotations(comparison)))
    throw Error(Problem{"cannot write the annotations to stderr", "--annotations", ""}, ExitStatus::work_failed);
}

}  // namespace tprimat::cli
