#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "compare/compare_runs.h"
#include "report/document.h"
#include "report/fit_table.h"
#include "report/plots/axis.h"
#include "report/plots/layout.h"
#include "report/report.h"
#include "text/json_fields.h"
#include "text/words.h"
#include "unit/compare/sample_runs.h"

namespace tprimat::results {
namespace {

size_t width_of(const std::string& text) {
  size_t width = 0;
  for (const std::string_view line : split(text, '\n'))
    width =
        std::max(width, static_cast<size_t>(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; })));
  return width;
}

std::string render(const TextTable& table, size_t width) {
  std::string text;
  for (const TextTable& each : fit_table(table, width)) text += render_text(each) + "--\n";
  return text;
}

const TextTable k_figures{{"figure", "A", "B"}, {{"MFU", "41.7 % [41.6 % to 41.8 %]", "-"}}, {1, 2}};

TEST(FitTable, LeavesATableThatFits) { EXPECT_EQ(render(k_figures, 80), render_text(k_figures) + "--\n"); }

TEST(FitTable, PutsIntervalsBelowTheirFigures) {
  EXPECT_EQ(render(k_figures, 32),
            "figure                   A  B\n"
            "MFU                 41.7 %  -\n"
            "        [41.6 % to 41.8 %]\n"
            "--\n");
}

TEST(FitTable, RepeatsTheNamesOfRowsInEveryPart) {
  const TextTable table{
      {"", "run", "device", "steps"}, {{"A", "NeMo", "H100", "40"}, {"B", "Primus", "MI300X", "7"}}, {}};
  EXPECT_EQ(render(table, 18),
            "   run     device\nA  NeMo    H100\nB  Primus  MI300X\n--\n"
            "   run     steps\nA  NeMo    40\nB  Primus  7\n--\n");
}

TEST(FitTable, WrapsProse) {
  const TextTable table{{"pair", "because"}, {{"B / A", "the whole interval lies beyond the smallest effect"}}, {}};
  EXPECT_EQ(render(table, 40),
            "pair   because\n"
            "B / A  the whole interval lies beyond\n"
            "       the smallest effect\n--\n");
}

LoadedRuns priced_runs(size_t count) {
  LoadedRuns loaded;
  for (size_t i = 0; i < count; ++i) {
    LoadedRun run = sample_run("run_" + std::to_string(i) + ".json", i % 2 == 0 ? Platform::nvd : Platform::amd,
                               i % 2 == 0 ? Framework::nemo : Framework::prim, 1.0 + 0.1 * static_cast<double>(i));
    run.result.gpu_info.total_memory_gb = 80;
    TelemetrySummary sensor;
    sensor.source = i % 2 == 0 ? "nvml" : "amd_smi";
    sensor.mean_power_watts = 5000;
    sensor.energy_joules = 5000 * 60;
    sensor.energy_valid = true;
    run.result.telemetry.push_back(sensor);
    summarise_run(run.result, {.usd_per_hour = 24.0});
    loaded.runs.push_back(run);
  }
  return loaded;
}

// Paths and sentences wrap as before; tables are new.
TEST(Readable, TablesFitEightyAndAHundredAndTwentyColumns) {
  for (const size_t count : {1, 2, 4, 9})
    for (const size_t width : {80, 120}) {
      const std::string text = render_terminal(compare_runs(priced_runs(count), {}), false, width);
      EXPECT_LE(width_of(text), width) << text;
    }
}

TEST(Readable, EveryFormatShowsWhatARunNeeds) {
  const Comparison comparison = compare_runs(priced_runs(2), {});
  const std::string json = print_json(comparison_to_json(comparison)), csv = render_csv(comparison);
  for (const char* key : {"tokens_per_wh", "tokens_per_usd_hour", "memory_allocated_share", "days_per_1e12_tokens",
                          "days_per_15e12_tokens", "gpu_cores"})
    EXPECT_NE(json.find('"' + std::string(key) + '"'), std::string::npos) << key;
  EXPECT_NE(csv.find(",tokens_per_usd_hour,tokens_per_usd_hour_ci95_low"), std::string::npos);
  for (const std::string& text :
       {render_terminal(comparison, false), render_markdown(comparison), render_html(comparison)})
    for (const char* shown : {"tokens per Wh", "tokens per USD-hour", "memory allocated, of the device",
                              "days for 1e12 tokens", "days for 15e12 tokens", "GPU cores", "132 SMs"})
      EXPECT_NE(text.find(shown), std::string::npos) << shown;
}

TEST(Readable, ManyParticipantsHaveBoundsAndNoSymmetricUncertainty) {
  const std::string text = render_terminal(compare_runs(priced_runs(9), {}), false);
  EXPECT_EQ(text.find("±"), std::string::npos) << text;
  EXPECT_NE(text.find("  95 % interval, from"), std::string::npos) << text;
}

TEST(AxisTicks, OfAConstantDiffer) {
  for (const double value : {3e-4, 1e-5, 10.37349166, 1.0, -2.5, 60.5, 1.5e12, 1e-300, 0.0}) {
    const AxisTicks axis = choose_ticks(value, value);
    EXPECT_GE(axis.labels.size(), 3u) << value;
    EXPECT_LT(axis.low, axis.high) << value;
    EXPECT_LE(axis.low, value);
    EXPECT_GE(axis.high, value);
    const std::set<std::string> distinct(axis.labels.begin(), axis.labels.end());
    EXPECT_EQ(distinct.size(), axis.labels.size()) << value << ": " << join(axis.labels, " ");
  }
}

TEST(AxisTicks, HaveDistinctLabelsWithTheirValue) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-12, 12), share(0, 1);
  for (int round = 0; round < 2000; ++round) {
    const double least = std::pow(10, exponent(random)), most = least * (1 + std::pow(10, -12 * share(random)));
    const AxisTicks axis = choose_ticks(least, most);
    ASSERT_GE(axis.at.size(), 3u) << least << ' ' << most;
    ASSERT_LE(axis.at.size(), 9u) << least << ' ' << most;
    const std::set<std::string> distinct(axis.labels.begin(), axis.labels.end());
    ASSERT_EQ(distinct.size(), axis.labels.size()) << join(axis.labels, " ");
    for (size_t i = 0; i < axis.at.size(); ++i)
      ASSERT_NEAR(std::stod(axis.labels[i]), axis.at[i], 1e-6 * (axis.high - axis.low) + 1e-9 * axis.high)
          << axis.labels[i];
  }
}

TEST(Plots, OfConstantSeriesLabelEveryTickOnce) {
  LoadedRuns runs = priced_runs(1);
  RunResult& run = runs.runs[0].result;
  run.learning_rates.assign(run.step_times.size(), 3e-4);
  run.loss_values.assign(run.step_times.size(), 2.4375);
  std::vector<std::string> rates, losses;
  for (const Shape& shape : lay_out(plot_comparison(compare_runs(runs, {}))).shapes) {
    const Label* label = std::get_if<Label>(&shape);
    if (label && label->text.ends_with("e-4")) rates.push_back(label->text);
    if (label && label->text.starts_with("2.4") && label->text.size() <= 5) losses.push_back(label->text);
  }
  EXPECT_GE(rates.size(), 3u);
  EXPECT_EQ(std::set<std::string>(rates.begin(), rates.end()).size(), rates.size()) << join(rates, " ");
  EXPECT_GE(losses.size(), 2u);
  EXPECT_EQ(std::set<std::string>(losses.begin(), losses.end()).size(), losses.size()) << join(losses, " ");
}

}  // namespace
}  // namespace tprimat::results
