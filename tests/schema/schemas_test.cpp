#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "schema/documents.h"

namespace tprimat {
namespace {

const std::string k_folder = std::string(TPRIMAT_SOURCE_DIR) + "/schema/";

TEST(Schemas, FilesHoldWhatTheFieldListsSay) {
  const bool update = std::getenv("TPRIMAT_UPDATE_GOLDEN") != nullptr;
  for (const Document& document : documents()) {
    const std::string path = k_folder + document.name + ".schema.json";
    const std::string text = print_json(document.schema);
    if (update) write_file_atomically(path, text);
    ASSERT_TRUE(std::filesystem::exists(path)) << path << "; regenerate with TPRIMAT_UPDATE_GOLDEN=1";
    EXPECT_EQ(read_file(path), text) << "regenerate with TPRIMAT_UPDATE_GOLDEN=1";
  }
}

TEST(Schemas, EachFileIsTheSchemaOfADocument) {
  std::set<std::string> expected, found;
  for (const Document& document : documents()) expected.insert(document.name + ".schema.json");
  for (const auto& each : std::filesystem::directory_iterator(k_folder)) found.insert(each.path().filename());
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace tprimat
