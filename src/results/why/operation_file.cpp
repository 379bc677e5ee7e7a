#include "why/operation_file.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "extract/log_source.h"

namespace tprimat::results {

std::vector<logs::WorkerOperation> load_operations(const std::filesystem::path& file) {
  logs::LogSource source(file);
  logs::OperationTableReader reader(file.string());
  for (std::string_view lines = source.next_lines(); !lines.empty(); lines = source.next_lines())
    while (!lines.empty()) {
      const size_t end = std::min(lines.find('\n'), lines.size());
      reader.read_line(lines.substr(0, end));
      lines.remove_prefix(std::min(end + 1, lines.size()));
    }
  if (!source.complaint().empty()) throw Error(Problem{source.complaint(), file.string(), "copy the file again"});
  return reader.finish();
}

}  // namespace tprimat::results
