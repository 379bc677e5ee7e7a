// Every file in fixtures/<dialect>/ is read as its dialect without being told, and yields what stands beside it in
// <file>.expected. A new dialect needs no more than a new folder; TPRIMAT_UPDATE_GOLDEN=1 writes the expectation, for
// its author to read.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "extract/dialects.h"
#include "extract/to_result.h"

namespace tprimat::logs {
namespace {

namespace fs = std::filesystem;
const fs::path k_fixtures = fs::path(TPRIMAT_SOURCE_DIR) / "tests/unit/extract/fixtures";

void append(std::string& text, const char* name, Figure figure) {
  if (figure) text += fmt::format(" {}={:.9g}", name, *figure);
}

constexpr std::pair<const char*, Figure ExtractedStep::*> k_figures_of_a_step[] = {
    {"seconds", &ExtractedStep::time_seconds},
    {"low", &ExtractedStep::time_low},
    {"high", &ExtractedStep::time_high},
    {"unix", &ExtractedStep::unix_time},
    {"loss", &ExtractedStep::loss},
    {"lr", &ExtractedStep::learning_rate},
    {"norm", &ExtractedStep::grad_norm},
    {"scale", &ExtractedStep::loss_scale},
    {"gbs", &ExtractedStep::global_batch_size},
    {"tokens", &ExtractedStep::tokens},
    {"samples_seen", &ExtractedStep::samples_seen},
    {"tokens_seen", &ExtractedStep::tokens_seen},
    {"tflops", &ExtractedStep::tflops_per_gpu},
    {"mfu", &ExtractedStep::mfu},
    {"tps", &ExtractedStep::tokens_per_second},
    {"tps_gpu", &ExtractedStep::tokens_per_second_per_gpu},
    {"sps", &ExtractedStep::samples_per_second},
    {"watts", &ExtractedStep::power_watts_per_gpu},
    {"joules", &ExtractedStep::energy_joules_per_gpu},
    {"allocated", &ExtractedStep::memory_allocated_gb},
    {"reserved", &ExtractedStep::memory_reserved_gb},
    {"used", &ExtractedStep::memory_used_gb},
    {"load", &ExtractedStep::expert_load},
    {"dropped", &ExtractedStep::dropped_share},
    {"aux", &ExtractedStep::aux_loss},
    {"z", &ExtractedStep::z_loss}};

std::string describe(const ExtractedStep& s) {
  std::string text = fmt::format("step {} line {}", s.step, s.line);
  if (s.rank >= 0) text += fmt::format(" rank {}", s.rank);
  if (s.attempt > 0) text += fmt::format(" attempt {}", s.attempt);
  if (s.reports > 1) text += fmt::format(" reports {}", s.reports);
  if (s.mean_of > 1) text += fmt::format(" mean_of {}", s.mean_of);
  text += fmt::format("{}{}{}", s.skipped ? " skipped" : "", s.with_evaluation ? " with_evaluation" : "",
                      s.with_checkpoint ? " with_checkpoint" : "");
  if (s.time_source != TimeSource::none) text += fmt::format(" {}", enum_name(s.time_source));
  for (const auto& [name, figure] : k_figures_of_a_step) append(text, name, s.*figure);
  return text + "\n";
}

std::string describe(const LogEvent& event) {
  std::string text = fmt::format("event {} line {}", enum_name(event.kind), event.line);
  if (event.rank >= 0) text += fmt::format(" rank {}", event.rank);
  if (event.step >= 0) text += fmt::format(" step {}", event.step);
  append(text, "seconds", event.seconds);
  append(text, "value", event.value);
  return text + ": " + event.text + "\n";
}

std::string describe(const ReadLog& read) {
  std::string text = fmt::format("{} records {} lines {} confidence {:.2f}\n", read.dialect ? read.dialect->id : "none",
                                 read.log.records, read.lines, read.confidence);
  const LoggedFacts& facts = read.log.facts;
  const auto fact = [&](const char* name, const auto& value) {
    if (value) text += fmt::format("{} {}\n", name, *value);
  };
  fact("gpu", facts.gpu_name), fact("gpus", facts.gpu_count), fact("gpu_memory_gb", facts.gpu_memory_gb);
  fact("model", facts.model), fact("parameters", facts.parameters), fact("max_steps", facts.max_steps);
  fact("gbs", facts.global_batch_size), fact("mbs", facts.micro_batch_size), fact("sl", facts.sequence_length);
  fact("tp", facts.tensor_parallel), fact("pp", facts.pipeline_parallel), fact("dp", facts.data_parallel);
  fact("ep", facts.expert_parallel), fact("etp", facts.expert_tensor_parallel), fact("peak_flops", facts.peak_flops);
  if (facts.routing) text += fmt::format("routing {}\n", enum_name(*facts.routing));
  if (facts.dispatcher) text += fmt::format("dispatcher {}\n", enum_name(*facts.dispatcher));
  if (facts.precision) text += fmt::format("precision {}\n", enum_name(*facts.precision));
  for (const ExtractedStep& step : read.log.steps) text += describe(step);
  for (const auto& [key, gb] : read.log.memory_gb)
    text += fmt::format("memory rank {} {} {:.6g} GB\n", key.rank, enum_name(key.kind), gb);
  for (const LogEvent& event : read.log.events) text += describe(event);
  for (const std::string& note : read.log.notes) text += "note " + note + "\n";
  if (!read.why_nothing.empty()) text += "nothing: " + read.why_nothing + "\n";
  return text;
}

std::vector<fs::path> fixtures() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(k_fixtures))
    if (entry.is_regular_file() && entry.path().extension() != ".expected" && entry.path().extension() != ".py")
      files.push_back(fs::relative(entry.path(), k_fixtures));
  std::sort(files.begin(), files.end());
  return files;
}

class Fixture : public testing::TestWithParam<fs::path> {};

TEST_P(Fixture, IsReadAsItsDialect) {
  const fs::path file = k_fixtures / GetParam();
  const ReadLog read = read_log(file, {});
  const std::string dialect = GetParam().begin()->string();
  if (dialect != "none") {
    ASSERT_NE(read.dialect, nullptr);
    EXPECT_EQ(read.dialect->id, dialect);
  }
  const std::string actual = describe(read), golden = file.string() + ".expected";
  if (std::getenv("TPRIMAT_UPDATE_GOLDEN") != nullptr) write_file_atomically(golden, actual);
  ASSERT_TRUE(fs::exists(golden)) << "TPRIMAT_UPDATE_GOLDEN=1 writes it; then read it\n" << actual;
  EXPECT_EQ(actual, read_file(golden));
  make_result(read, file.string(), {});  // whatever was read can be judged
}

INSTANTIATE_TEST_SUITE_P(Dialects, Fixture, testing::ValuesIn(fixtures()), [](const auto& test) {
  std::string name = test.param.string();
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

TEST(Fixtures, EveryDialectHasOne) {
  for (const Dialect& dialect : dialects()) {
    const fs::path folder = k_fixtures / dialect.id;
    EXPECT_TRUE(fs::exists(folder) && !fs::is_empty(folder)) << folder;
  }
}

}  // namespace
}  // namespace tprimat::logs
