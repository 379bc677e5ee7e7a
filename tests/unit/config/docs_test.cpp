#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "config_case.h"

namespace tprimat::suite {
namespace {

std::string docs() { return read_file(std::filesystem::path(TPRIMAT_SOURCE_DIR) / "docs" / "config.md"); }

std::string row_of(const KeyDoc& key) {
  std::string aliases;
  for (const std::string& alias : key.aliases) aliases += (aliases.empty() ? "" : ", ") + ("`" + alias + "`");
  return "| `" + key.path + "` | " + key.type + " | " + key.doc + (aliases.empty() ? "" : " (also " + aliases + ")") +
         " |";
}

// The table in docs/config.md is the schema's, row by row; what is missing is printed ready to paste.
TEST(Docs, ListEveryKeyAsTheProgramKnowsIt) {
  const std::string text = docs();
  for (const KeyDoc& key : list_keys()) EXPECT_NE(text.find(row_of(key)), std::string::npos) << row_of(key);
}

TEST(Docs, ListEveryNamedVariable) {
  const std::string text = docs();
  for (const ExportedVariable& variable : list_named_variables())
    EXPECT_NE(text.find("| `" + variable.name + "` | `" + variable.value + "` |"), std::string::npos)
        << "| `" << variable.name << "` | `" << variable.value << "` |";
}

TEST(Keys, HaveADocWithoutAFullStop) {
  for (const KeyDoc& key : list_keys()) {
    EXPECT_FALSE(key.doc.empty()) << key.path;
    EXPECT_NE(key.doc.back(), '.') << key.path;
  }
}

}  // namespace
}  // namespace tprimat::suite
