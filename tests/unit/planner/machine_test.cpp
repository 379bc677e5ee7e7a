#include "planner/machine.h"

#include <gtest/gtest.h>

#include "planner/families.h"

namespace tprimat::planner {
namespace {

TEST(Machines, AreFoundByTheirNamesInTables) {
  EXPECT_EQ(find_printed_machine("H100-SXM-80GB 700W")->id, "H100-SXM-80GB");
  EXPECT_EQ(find_printed_machine("DGX-GB200")->id, "GB200");
  EXPECT_EQ(find_printed_machine("a100_40gb")->id, "A100-SXM-40GB");
  EXPECT_EQ(find_printed_machine("H100-SXM 96GB HBM2e 2.4TB/s 500W")->id, "H100-SXM-96GB-500W");
  EXPECT_EQ(find_printed_machine("TPU v5e"), nullptr);
  EXPECT_EQ(find_printed_machine(""), nullptr);
  EXPECT_EQ(find_printed_machine("H100 NVL"), nullptr);
  EXPECT_EQ(find_printed_machine("GH200"), nullptr);
  EXPECT_EQ(find_machine("A100-PCIE-40GB"), nullptr);
  EXPECT_EQ(find_machine("h100")->id, "H100-SXM-80GB");
}

TEST(Machines, AVariantKeepsThePartsPeakAndHasItsOwnMemory) {
  const Machine part = *find_machine("H100"), variant = *find_machine("H100-SXM-96GB-500W");
  EXPECT_EQ(part.peak_16, variant.peak_16);
  EXPECT_DOUBLE_EQ(variant.memory_bandwidth, 2.4e12);
  EXPECT_DOUBLE_EQ(variant.memory_bytes, 96e9);
}

TEST(Machines, EveryOneIsComplete) {
  for (const Machine& each : machines()) {
    EXPECT_GT(each.peak_16, 1e13) << each.id;
    EXPECT_GT(each.memory_bytes, 1e10) << each.id;
    EXPECT_GT(each.link_bandwidth, each.network_bandwidth) << each.id;
    EXPECT_EQ(find_machine(each.id)->id, each.id);
  }
}

TEST(Machines, WhatAPartCannotDoHasNoPeak) {
  EXPECT_EQ(find_machine("A100-SXM-80GB")->peak(PlanPrecision::fp8), 0);
  EXPECT_EQ(find_machine("H100")->peak(PlanPrecision::fp4), 0);
  EXPECT_EQ(find_machine("V100")->peak(PlanPrecision::bf16), 0);
  EXPECT_GT(find_machine("V100")->peak(PlanPrecision::fp16), 0);
  EXPECT_GT(find_machine("GB200")->peak(PlanPrecision::fp4), find_machine("GB200")->peak(PlanPrecision::fp8));
}

TEST(Families, TheLongestWordWins) {
  EXPECT_EQ(find_printed_family("Megatron-DeepSpeed")->id, "megatron_deepspeed");
  EXPECT_EQ(find_printed_family("DeepSpeed ZeRO-3")->id, "deepspeed_zero3");
  EXPECT_EQ(find_printed_family("Megatron-Bridge / NeMo 26.06")->id, "megatron_core");
  EXPECT_EQ(find_printed_family("MosaicML llm-foundry (Composer FSDP)")->id, "composer_fsdp");
  EXPECT_EQ(find_printed_family("Megatron-LM")->id, "megatron_2021");
  EXPECT_EQ(find_printed_family("JAX"), nullptr);
  EXPECT_EQ(find_family("deepmind"), nullptr);
  EXPECT_EQ(find_family("mega")->id, "megatron_core");
}

}  // namespace
}  // namespace tprimat::planner
