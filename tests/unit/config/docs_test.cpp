#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "config/schema.h"
#include "config/values.h"
#include "config/variables.h"
#include "config_case.h"

namespace tprimat::suite {
namespace {

// A key of the configuration: "training.data.seq_length", "models.<name>.num_layers".
struct KeyDoc {
  std::string path, type, doc;
  std::vector<std::string> aliases;
};

void list_keys_at(const KeySchema& schema, const std::string& path, const std::vector<std::string>& aliases,
                  std::vector<KeyDoc>& keys) {
  if (schema.kind == KeySchema::Kind::value) keys.push_back({path, describe_type(schema), schema.doc, aliases});
  if (schema.kind == KeySchema::Kind::named)
    list_keys_at(schema.each[0],
                 path + (schema.names == NameKind::any        ? ".<name>"
                         : schema.names == NameKind::label    ? ".<label>"
                         : schema.names == NameKind::platform ? ".<platform>"
                                                              : ".<framework>"),
                 {}, keys);
  for (const auto& [key, below] : schema.keys) {
    std::vector<std::string> spellings;
    for (const KeyAlias& alias : schema.aliases)
      if (alias.key == key) spellings.emplace_back(alias.alias);
    list_keys_at(below, join_path(path, key), spellings, keys);
  }
}

std::vector<KeyDoc> list_keys() {
  std::vector<KeyDoc> keys;
  list_keys_at(config_schema(), "", {}, keys);
  return keys;
}

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
  for (const ConfigVariable& variable : named_variables())
    EXPECT_NE(text.find("| `" + variable.name + "` | `" + variable.path + "` |"), std::string::npos)
        << "| `" << variable.name << "` | `" << variable.path << "` |";
}

TEST(Keys, HaveADocWithoutAFullStop) {
  for (const KeyDoc& key : list_keys()) {
    EXPECT_FALSE(key.doc.empty()) << key.path;
    EXPECT_NE(key.doc.back(), '.') << key.path;
  }
}

}  // namespace
}  // namespace tprimat::suite
