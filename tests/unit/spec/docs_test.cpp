#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/files.h"
#include "spec/hardware_catalogue.h"
#include "spec/model_catalogue.h"

namespace tprimat {
namespace {

// 8030261248 -> "8 030 261 248"
std::string group_digits(int64_t value) {
  std::string digits = std::to_string(value);
  for (auto at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), " ");
  return digits;
}

TEST(Docs, ModelsPageStatesEveryModelWithItsFigures) {
  const std::string page = read_file(TPRIMAT_SOURCE_DIR "/docs/models.md");
  for (const KnownModel& known : model_catalogue()) {
    const int64_t length = std::min<int64_t>(2048, known.spec.max_position_embeddings);
    const double flops = flops_per_token(known.spec, length, FlopFormula::causal) / 1e9;
    const auto whole = static_cast<int64_t>(flops);
    const std::string hundredths = fmt::format("{:.2f}", flops).substr(fmt::format("{}", whole).size());
    const auto active = known.published_active_parameters;
    const std::string row =
        fmt::format("| `{}` | {} | {} |{} | {}{} at SL {} |", known.spec.name, known.spec.full_name,
                    group_digits(known.published_parameters.value_or(0)), active ? " " + group_digits(*active) : "",
                    group_digits(whole), hundredths, length);
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

TEST(Docs, HardwarePageStatesEveryPart) {
  const std::string page = read_file(TPRIMAT_SOURCE_DIR "/docs/hardware.md");
  for (const HardwareSpec& part : hardware_catalogue())
    EXPECT_NE(page.find("| `" + part.id + "` |"), std::string::npos) << part.id;
}

}  // namespace
}  // namespace tprimat
