#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "base/sanitizers.h"
#include "config_case.h"

namespace tprimat::suite {
namespace {

constexpr int k_inputs = TPRIMAT_ADDRESS_SANITIZER ? 600 : 2000;

// Damages a sound configuration in the ways that editors, merges and disks do.
const std::vector<std::string> k_pieces = {"{",        "}",
                                           "[",        "]",
                                           ":",        ",",
                                           "\"",       "'",
                                           "\t",       "\n",
                                           "- ",       "? ",
                                           "&a ",      "*a",
                                           "!!x ",     "|",
                                           ">",        "#",
                                           "---\n",    "<<: ",
                                           "-1",       "0",
                                           "1e308",    "1e999",
                                           ".nan",     "99999999999999999999",
                                           "0x10",     "true",
                                           "null",     "~",
                                           "${",       "${A:-",
                                           "}",        "\x80",
                                           "\xFF\xFE", std::string(1, '\0'),
                                           "%",        "@",
                                           "`",        "TP: 65536",
                                           "{TP: 0}",  "   ",
                                           "\r\n"};

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::string mutate(std::string text) {
    for (int rounds = pick(1, 3); rounds > 0 && !text.empty(); --rounds) mutate_once(text);
    return text;
  }

 private:
  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  size_t place(const std::string& text) { return static_cast<size_t>(pick(0, static_cast<int>(text.size()) - 1)); }

  std::pair<size_t, size_t> line(const std::string& text) {
    const size_t at = place(text);
    const size_t newline = text.rfind('\n', at);
    const size_t start = newline == std::string::npos || newline == at ? at : newline + 1;
    const size_t end = std::min(text.find('\n', at), text.size());
    return {std::min(start, end), end - std::min(start, end)};
  }

  void mutate_once(std::string& text) {
    switch (pick(0, 6)) {
      case 0: text[place(text)] = static_cast<char>(pick(0, 255)); return;
      case 1:
        text.insert(place(text), k_pieces[static_cast<size_t>(pick(0, static_cast<int>(k_pieces.size()) - 1))]);
        return;
      case 2: text.erase(place(text), static_cast<size_t>(pick(1, 20))); return;
      case 3: text.resize(place(text)); return;
      case 4: {
        const auto [start, length] = line(text);
        text.insert(start, text.substr(start, length) + "\n");
        return;
      }
      case 5: {
        const auto [start, length] = line(text);
        text.erase(start, length);
        return;
      }
      default: replace_value(text);
    }
  }

  void replace_value(std::string& text) {
    static const std::vector<std::string> k_values = {"0",   "-1",     "1e9", "4294967296", "9007199254740993",
                                                      "[]",  "{}",     "''",  "x",          ".inf",
                                                      "fp8", "nvidia", "7.5", "1000000"};
    const size_t colon = text.find(": ", place(text));
    if (colon == std::string::npos) return;
    const size_t end = std::min(text.find_first_of(",}\n", colon), text.size());
    text.replace(colon + 2, end > colon + 2 ? end - colon - 2 : 0,
                 k_values[static_cast<size_t>(pick(0, static_cast<int>(k_values.size()) - 1))]);
  }

  std::mt19937 random_;
};

// Loads, and if that works goes on to what a run does; only Error may come out.
bool survives(const std::string& text) {
  try {
    const LoadedExperiment loaded = ConfigCase{text}.load();
    for (const ModelEntry& model : loaded.experiment.models)
      for (const auto& [platform, setup] : loaded.experiment.platforms)
        make_train_spec(loaded.experiment, platform, model.spec.name, loaded.experiment.methodology);
    return true;
  } catch (const Error& error) {
    EXPECT_FALSE(error.problems().empty());
    return false;
  }
}

// TPRIMAT_FUZZ_ROUNDS=5 makes the hunt five times as long.
int rounds_asked() {
  const char* rounds = std::getenv("TPRIMAT_FUZZ_ROUNDS");
  return rounds == nullptr ? 1 : std::max(1, std::atoi(rounds));
}

void fuzz(const std::string& text, int mutations, unsigned seed) {
  Mutator mutator(seed);
  mutations *= rounds_asked();
  int loaded = 0;
  for (int i = 0; i < mutations; ++i) loaded += survives(mutator.mutate(text));
  EXPECT_GT(loaded, mutations / 100) << "the mutations are too wild to reach the rules";
  EXPECT_LT(loaded, mutations * 99 / 100) << "the mutations change nothing";
}

TEST(Fuzz, DamagedDefaultsNeverCrash) { fuzz(std::string(default_config_text()), k_inputs, 1); }

TEST(Fuzz, DamagedOlderFilesNeverCrash) {
  fuzz(eight_devices("benchmarking: {warmup: {skip_first_n_steps: 1}, runs: {default_num_runs: 2}}\n"
                     "comparison: {plots: {dpi: 300}, report: {format: markdown}}\n"
                     "profiling: {enabled: true, schedule: {wait: 1}}\n"
                     "paths: {nemo: {data_dir: /d}, tprimat: {output_dir: ./o}}\n"
                     "frameworks: {fsdp: {supported_platforms: [amd], amd: {enabled: true}}}\n"),
       k_inputs / 4, 3);
}

TEST(Fuzz, DamagedLayoutsNeverCrash) {
  fuzz(
      eight_devices("benchmarking: {enhanced_metrics: {cloud_costs: {nvidia_h100_8gpu_per_hour: 32.0}, hardware_specs: "
                    "{nvidia_h100: {peak_tflops_fp8: 1979e12}}}}\n"),
      k_inputs, 2);
}

}  // namespace
}  // namespace tprimat::suite
