#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "compare/compare_runs.h"
#include "report/report.h"
#include "text/json_fields.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> list_cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(TPRIMAT_GOLDEN_DIR) / "compare"))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Compiled elsewhere, the last digits of a figure may differ.
bool nearly_equal(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number())
    return std::fabs(a.get<double>() - b.get<double>()) <= 1e-9 * std::fabs(a.get<double>());
  if (a.is_array() && b.is_array()) return std::equal(a.begin(), a.end(), b.begin(), b.end(), nearly_equal);
  if (!a.is_object() || !b.is_object()) return a == b;
  return std::equal(
      a.items().begin(), a.items().end(), b.items().begin(), b.items().end(),
      [](const Json::Member& x, const Json::Member& y) { return x.key == y.key && nearly_equal(x.value, y.value); });
}

// Runs in the case's folder, so that the paths in the report are the same everywhere.
class GoldenReport : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    before_ = fs::current_path();
    fs::current_path(fs::path(TPRIMAT_GOLDEN_DIR) / "compare" / GetParam());
  }
  void TearDown() override { fs::current_path(before_); }

  static std::string expected(const std::string& name, const std::string& text) {
    if (std::getenv("TPRIMAT_UPDATE_GOLDEN") != nullptr) write_file_atomically(name, text);
    return read_file(name);
  }

 private:
  fs::path before_;
};

TEST_P(GoldenReport, IsAsWritten) {
  const results::Comparison comparison = results::compare_runs(results::load_runs({"runs"}), {});
  const std::string terminal = results::render_terminal(comparison, false), markdown = render_markdown(comparison);
  EXPECT_EQ(terminal, expected("expected.txt", terminal));
  EXPECT_EQ(markdown, expected("expected.md", markdown));
  const std::string json = print_json(results::comparison_to_json(comparison));
  const Json wanted = parse_json(expected("expected.json", json), "expected.json");
  EXPECT_TRUE(nearly_equal(parse_json(json, "report"), wanted)) << json;
}
INSTANTIATE_TEST_SUITE_P(Compare, GoldenReport, ::testing::ValuesIn(list_cases()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tprimat
