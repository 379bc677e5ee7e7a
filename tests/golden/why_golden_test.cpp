#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "report/draw_plot.h"
#include "report/why_report.h"
#include "unit/report/sample_ledger.h"

namespace tprimat::results {
namespace {

std::string expected(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(TPRIMAT_GOLDEN_DIR) / "why" / name;
  if (std::getenv("TPRIMAT_UPDATE_GOLDEN") != nullptr) write_file_atomically(path, text);
  return read_file(path);
}

TEST(GoldenWhy, IsAsWritten) {
  const Ledger ledger = sample_ledger();
  const std::string text = render_why(ledger, {}), all = render_why(ledger, {.all = true});
  const std::string json = print_json(why_to_json(ledger)), svg = render_svg(plot_why(ledger));
  EXPECT_EQ(text, expected("expected.txt", text));
  EXPECT_EQ(all, expected("expected_all.txt", all));
  EXPECT_EQ(json, expected("expected.json", json));
  EXPECT_EQ(svg, expected("expected.svg", svg));
}

}  // namespace
}  // namespace tprimat::results
