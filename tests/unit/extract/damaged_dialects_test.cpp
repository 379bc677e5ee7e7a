#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "unit/extract/dialect_reading.h"

namespace tprimat::logs {
namespace {

// The same at every call: cut short, and with `round` characters changed.
std::string damaged(const std::string& whole, int round, uint32_t& seed) {
  std::string text = whole.substr(0, whole.size() * static_cast<size_t>(round % 10 + 1) / 10);
  for (int i = 0; i < round && !text.empty(); ++i) {
    seed = seed * 1664525 + 1013904223;
    text[seed % text.size()] = "9999e.-+:|{}[]\",/ \n"[(seed >> 16) % 19];
  }
  return text;
}

void read_damaged(std::string_view id, const std::string& whole) {
  uint32_t seed = 1;
  for (int round = 0; round < 60; ++round) {
    try {
      const Reading reading = read_text(find_dialect(id), damaged(whole, round, seed));
      for (const ExtractedStep& each : reading.log.steps) EXPECT_GE(each.step, 0);
    } catch (const Error&) {
    }
  }
}

// Nothing that a damaged log holds ends the program, and every fixture is claimed by its own dialect.
TEST(DamagedDialects, EndNoProgram) {
  for (const char* id : {"torchtitan", "primus_torchtitan", "llmc", "llmc_main", "modded_nanogpt", "nanotron",
                         "picotron", "composer", "litgpt", "mlperf", "steps", "native", "csv", "result", "tfevents"})
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(TPRIMAT_SOURCE_DIR) + "/tests/unit/extract/fixtures/" + id))
      read_damaged(id, read_file(entry.path().string()));
}

}  // namespace
}  // namespace tprimat::logs
