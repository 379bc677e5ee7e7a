#include "planner/machine.h"

#include <gtest/gtest.h>

#include <utility>

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

TEST(Machines, HaveTheSpellingsOfSubmissions) {
  const std::pair<const char*, const char*> cases[] = {{"H100-SXM5-80GB", "H100-SXM-80GB"},
                                                       {"NVIDIA H200-SXM5-141GB", "H200-SXM-141GB"},
                                                       {"H200-NVL-141GB", "H200-NVL-141GB"},
                                                       {"NVIDIA Blackwell GPU (B200-SXM-180GB)", "B200-SXM"},
                                                       {"B300-SXM-270GB", "B300-SXM-270GB"},
                                                       {"A100-SXM4-80GB", "A100-SXM-80GB"},
                                                       {"A100-SXM4-40GB", "A100-SXM-40GB"},
                                                       {"NVIDIA L40S", "L40S"},
                                                       {"GB200 NVL72", "GB200"},
                                                       {"NVIDIA Blackwell Ultra GPU (GB300)", "GB300"},
                                                       {"AMD Instinct MI325X 256GB HBM3E DLC", "MI325X"},
                                                       {"AMD Instinct MI350X", "MI350X"},
                                                       {"MI250X (one GCD)", "MI250X-GCD"}};
  for (const auto& [name, id] : cases) {
    const Machine* found = find_printed_machine(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->id, id) << name;
  }
  for (const char* name : {"A100-PCIe-80GB", "MI250X (2 GCDs)", "H20", "L40", "MI300A", "Gaudi 2", "TPU-v5p", "gpu"})
    EXPECT_EQ(find_printed_machine(name), nullptr) << name;
}

TEST(Machines, AMeshHasTheLinksOfItsMembersAlone) {
  const Machine mesh = *find_machine("MI300X"), switched = *find_machine("H100"), card = *find_machine("MI250X");
  EXPECT_DOUBLE_EQ(mesh.link_bandwidth_among(2), 64e9);
  EXPECT_DOUBLE_EQ(mesh.link_bandwidth_among(4), 3 * 64e9);
  EXPECT_DOUBLE_EQ(mesh.link_bandwidth_among(8), mesh.link_bandwidth);
  EXPECT_DOUBLE_EQ(mesh.link_bandwidth_among(64), mesh.link_bandwidth);
  EXPECT_DOUBLE_EQ(mesh.link_bandwidth_among(0), 64e9);
  EXPECT_DOUBLE_EQ(find_machine("MI355X")->link_bandwidth_among(2), 76.5e9);
  EXPECT_DOUBLE_EQ(switched.link_bandwidth_among(2), switched.link_bandwidth);
  EXPECT_DOUBLE_EQ(card.link_bandwidth_among(2), 200e9);
  EXPECT_DOUBLE_EQ(card.link_bandwidth_among(8), 150e9);
}

TEST(Machines, AnMi250xIsOneDie) {
  const Machine die = *find_printed_machine("MI250X");
  EXPECT_DOUBLE_EQ(die.peak_16, 191.5e12);
  EXPECT_EQ(die.peak(PlanPrecision::fp8), 0);
  EXPECT_DOUBLE_EQ(die.memory_bytes, 64e9);
  EXPECT_DOUBLE_EQ(die.network_bandwidth, 12.5e9);
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
