#include "run/stated_cause.h"

#include <fstream>

#include "base/printable.h"
#include "text/enum_names.h"

namespace tprimat::suite {

std::optional<logs::EndCause> read_stated_cause(const std::string& path) {
  if (path.empty()) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::string word;
  char sentence[1024] = "";
  if (!(file >> word) || !file.ignore(1)) return std::nullopt;
  file.getline(sentence, sizeof sentence);
  const std::string text = printable(sentence);
  if (text.empty()) return std::nullopt;
  return logs::EndCause{parse_enum<FailureKind>(word).value_or(FailureKind::error), text, {}, false};
}

}  // namespace tprimat::suite
