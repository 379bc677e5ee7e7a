#include "spec/hardware_catalogue.h"

#include <gtest/gtest.h>

#include <cctype>

#include "example_data.h"
#include "unit/spec/published_tables.h"

namespace tprimat {
namespace {

std::string id_of(std::string_view name) {
  const auto part = find_hardware(name);
  return part ? part->id : "";
}

TEST(FindHardware, ResolvesDriverAndUserNames) {
  const std::pair<const char*, const char*> cases[] = {{"NVIDIA H100 80GB HBM3", "H100-SXM-80GB"},
                                                       {"H100", "H100-SXM-80GB"},
                                                       {"nvidia h100", "H100-SXM-80GB"},
                                                       {"nvidia_h100", "H100-SXM-80GB"},
                                                       {"NVIDIA H100 PCIe", "H100-PCIe-80GB"},
                                                       {"NVIDIA H200", "H200-SXM-141GB"},
                                                       {"NVIDIA A100-SXM4-80GB", "A100-SXM-80GB"},
                                                       {"A100-SXM4-80GB", "A100-SXM-80GB"},
                                                       {"NVIDIA A100-SXM4-40GB", "A100-SXM-40GB"},
                                                       {"NVIDIA A100 80GB PCIe", "A100-PCIe-80GB"},
                                                       {"NVIDIA B200", "B200-SXM"},
                                                       {"NVIDIA GB200", "GB200"},
                                                       {"AMD Instinct MI300X", "MI300X"},
                                                       {"MI300X", "MI300X"},
                                                       {"amd_mi300x", "MI300X"},
                                                       {"AMD Instinct MI325X", "MI325X"},
                                                       {"AMD Instinct MI250X", "MI250X-GCD"},
                                                       {"MI250X (2 GCDs)", "MI250X-2GCD"},
                                                       {"AMD Instinct MI210", "MI210"},
                                                       {"AMD Radeon RX 7900 XTX", "RX-7900-XTX"},
                                                       {"AMD Radeon PRO W7900", "PRO-W7900"},
                                                       {"AMD Radeon Pro W7900 Dual Slot", "PRO-W7900"}};
  for (const auto& [name, id] : cases) EXPECT_EQ(id_of(name), id) << name;
}

TEST(FindHardware, NeverGuesses) {
  for (const char* name : {"", "A100", "MI250X", "H100 NVL", "NVIDIA H100 NVL", "NVIDIA GeForce RTX 4090", "H10", "N/A",
                           "AMD Radeon RX 7900 XT", "AMD Radeon PRO W7900D", "AMD Radeon Graphics"})
    EXPECT_EQ(id_of(name), "") << name;
}

TEST(HardwareCatalogue, PeaksAreDense) {
  EXPECT_EQ(find_hardware("H100")->dense_peak_flops.at(Precision::bf16), 989e12);
  EXPECT_EQ(find_hardware("H100")->dense_peak_flops.at(Precision::fp8), 1979e12);
  EXPECT_EQ(find_hardware("NVIDIA H100 PCIe")->dense_peak_flops.at(Precision::bf16), 756e12);
  EXPECT_EQ(find_hardware("MI300X")->dense_peak_flops.at(Precision::bf16), 1307e12);
  EXPECT_EQ(find_hardware("Tesla V100-SXM2-32GB")->dense_peak_flops.at(Precision::fp16), 125e12);
  EXPECT_EQ(find_hardware("MI350X")->dense_peak_flops.at(Precision::bf16), 2300e12);
  EXPECT_EQ(find_hardware("MI350X")->dense_peak_flops.at(Precision::fp8), 4600e12);
  EXPECT_EQ(find_hardware("MI355X")->dense_peak_flops.at(Precision::fp8), 5000e12);
  EXPECT_EQ(find_hardware("MI210")->dense_peak_flops.at(Precision::bf16), 181e12);
  EXPECT_EQ(find_hardware("RX 7900 XTX")->dense_peak_flops.at(Precision::fp16), 122.8e12);
  EXPECT_EQ(find_hardware("W7900")->dense_peak_flops.at(Precision::fp16), 122.6e12);
  EXPECT_EQ(find_hardware("MI300X")->tdp_watts, 750);
  EXPECT_EQ(find_hardware("H100")->memory_bandwidth, 3350e9);
}

TEST(HardwareCatalogue, WhatNoSourceStatesIsAbsent) {
  EXPECT_FALSE(find_hardware("NVIDIA A100-SXM4-80GB")->dense_peak_flops.contains(Precision::fp8));
  EXPECT_FALSE(find_hardware("Tesla V100-SXM2-16GB")->dense_peak_flops.contains(Precision::bf16));
  EXPECT_FALSE(find_hardware("AMD Instinct MI350X")->dense_peak_flops.contains(Precision::tf32));
  for (const char* part : {"MI210", "RX-7900-XTX", "PRO-W7900"})
    EXPECT_FALSE(find_hardware(part)->dense_peak_flops.contains(Precision::fp8)) << part;
  EXPECT_FALSE(find_hardware("NVIDIA H100 PCIe")->tdp_watts);
}

TEST(HardwareCatalogue, EveryPartIsPlausible) {
  ASSERT_GE(hardware_catalogue().size(), 15u);
  for (const HardwareSpec& part : hardware_catalogue()) {
    EXPECT_FALSE(part.source.empty()) << part.id;
    EXPECT_FALSE(part.checked.empty()) << part.id;
    for (const auto& [precision, rate] : part.achievable_flops) {
      ASSERT_TRUE(part.dense_peak_flops.contains(precision)) << part.id;
      EXPECT_LT(rate, part.dense_peak_flops.at(precision)) << part.id;
    }
    for (const auto& [precision, rate] : part.dense_peak_flops) EXPECT_TRUE(rate > 1e13 && rate < 1e16) << part.id;
  }
}

// "1307 (printed 1300 rounded)" -> 1307; nothing for "" and "none".
std::optional<double> leading_figure(const std::string& cell) {
  if (cell.empty() || std::isdigit(static_cast<unsigned char>(cell[0])) == 0) return std::nullopt;
  return std::stod(cell);
}

std::optional<double> rate_of(const std::map<Precision, double>& rates, Precision precision) {
  const auto found = rates.find(precision);
  return found == rates.end() ? std::nullopt : std::optional(found->second);
}

// An empty cell is open there, and ours may have another source; "none" is absent.
void expect_figure(const std::optional<double>& ours, const std::string& cell, double unit) {
  if (cell.empty()) return;
  const auto published = leading_figure(cell);
  ASSERT_EQ(ours.has_value(), published.has_value()) << cell;
  if (ours) {
    EXPECT_NEAR(*ours, *published * unit, 1e-9 * *ours) << cell;
  }
}

void expect_row(const test::Row& row) {
  SCOPED_TRACE(row.at("gpu"));
  const auto part = find_hardware(row.at("gpu"));
  ASSERT_TRUE(part);
  expect_figure(rate_of(part->dense_peak_flops, Precision::fp32), row.at("fp32_tflops"), 1e12);
  expect_figure(rate_of(part->dense_peak_flops, Precision::tf32), row.at("tf32_tflops"), 1e12);
  expect_figure(rate_of(part->dense_peak_flops, Precision::fp16), row.at("fp16_tflops"), 1e12);
  expect_figure(rate_of(part->dense_peak_flops, Precision::bf16), row.at("bf16_tflops"), 1e12);
  expect_figure(rate_of(part->dense_peak_flops, Precision::fp8), row.at("fp8_tflops"), 1e12);
  expect_figure(rate_of(part->achievable_flops, Precision::bf16), row.at("mamf_bf16_tflops"), 1e12);
  expect_figure(rate_of(part->achievable_flops, Precision::fp8), row.at("mamf_fp8_tflops"), 1e12);
  expect_figure(part->memory_bytes, row.at("mem_gb"), 1e9);
  expect_figure(part->memory_bandwidth, row.at("mem_bw_tbps"), 1e12);
  expect_figure(part->tdp_watts, row.at("tdp_w"), 1.0);
}

TEST(HardwareCatalogue, AgreesWithThePublishedTable) {
  SKIP_WITHOUT_EXAMPLE_DATA(TPRIMAT_SHARED_DATA "/published/hardware.tsv");
  const auto rows = test::load_table(TPRIMAT_SHARED_DATA "/published/hardware.tsv");
  ASSERT_FALSE(rows.empty());
  for (const test::Row& row : rows) expect_row(row);
}

}  // namespace
}  // namespace tprimat
