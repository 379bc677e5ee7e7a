#include <gtest/gtest.h>

#include "extract/dialects.h"
#include "feed_lines.h"

namespace tprimat::logs {
namespace {

ExtractedLog read(std::string_view text) { return feed_lines(machine_facts_reader(), text); }

constexpr const char* k_smi_table =
    "+-----------------------------------------------------------------------------+\n"
    "| NVIDIA-SMI 550.54       Driver Version: 550.54       CUDA Version: 12.4     |\n"
    "|-------------------------------+----------------------+----------------------+\n"
    "| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"
    "|===============================+======================+======================|\n"
    "|   0  NVIDIA H100 80GB HBM3   On | 00000000:18:00.0 Off |                    0 |\n"
    "| N/A   28C    P0   124W / 700W |   7746MiB / 81559MiB |      0%      Default |\n"
    "+-------------------------------+----------------------+----------------------+\n"
    "|   1  NVIDIA H100 80GB HBM3   On | 00000000:19:00.0 Off |                    0 |\n"
    "| N/A   28C    P0   124W / 700W |    746MiB / 81559MiB |      0%      Default |\n"
    "+-----------------------------------------------------------------------------+\n"
    "| Processes:                                                                  |\n"
    "|    0   N/A  N/A     123      C   python                          700MiB |\n";

TEST(MachineFacts, ReadsTheTableOfNvidiaSmi) {
  const ExtractedLog log = read(k_smi_table);
  EXPECT_EQ(log.facts.gpu_name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(log.facts.gpu_count, 2);
  EXPECT_NEAR(*log.facts.gpu_memory_gb, 81559 * 1048576.0 / 1e9, 1e-9);
  EXPECT_EQ(log.facts.stack_version, "12.4");
  EXPECT_EQ(log.facts.platform, Platform::nvd);
  EXPECT_EQ(log.notes.size(), 1u);  // a listing is no proof of what ran
}

TEST(MachineFacts, TheRunItselfKnowsItsGpusBetter) {
  EXPECT_EQ(read(std::string(k_smi_table) + "dist_world_size=16\n").facts.gpu_count, 16);
  EXPECT_EQ(read("dist_world_size=16\n" + std::string(k_smi_table)).facts.gpu_count, 16);
}

TEST(MachineFacts, ReadsTheTableOfRocmSmi) {
  const ExtractedLog log = read(
      "=============== ROCm System Management Interface ===============\n"
      "Device  [Model : Revision]    Temp        Power     VRAM%  GPU%\n"
      "0       [0x74a1 : 0x00]       45.0 C      173.0W    0%   0%\n"
      "        AMD Instinct MI300X\n"
      "1       [0x74a1 : 0x00]       41.0 C      179.0W    0%   0%\n"
      "        AMD Instinct MI300X\n"
      "================= End of ROCm SMI Log ==========================\n");
  EXPECT_EQ(log.facts.gpu_name, "AMD Instinct MI300X");
  EXPECT_EQ(log.facts.gpu_count, 2);
  EXPECT_EQ(log.facts.platform, Platform::amd);
}

TEST(MachineFacts, ReadsGpusThatALineNames) {
  const ExtractedLog titan = read(
      "[titan] 2025-01-01 00:00:00,000 - root - INFO - CUDA capacity: NVIDIA B200 with "
      "178.35GiB memory\n");
  EXPECT_EQ(titan.facts.gpu_name, "NVIDIA B200");
  EXPECT_NEAR(*titan.facts.gpu_memory_gb, 178.35 * 1.073741824, 1e-6);
  EXPECT_EQ(titan.facts.gpu_count, std::nullopt);
  const ExtractedLog listed =
      read("GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\nGPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-2)\n");
  EXPECT_EQ(listed.facts.gpu_name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(listed.facts.gpu_count, 2);
  EXPECT_EQ(read("You are using a CUDA device ('NVIDIA L40S 48GB') that has Tensor Cores.\n").facts.gpu_name,
            "NVIDIA L40S 48GB");
  EXPECT_EQ(read("GPU: AMD Instinct MI300X\n").facts.gpu_name, "AMD Instinct MI300X");
}

TEST(MachineFacts, ProseNamesNoGpu) {
  for (const char* line : {"FlashAttention requires an NVIDIA A100 or newer GPU", "Copyright: NVIDIA Corporation 2025",
                           "--config configs/NVIDIA H100/llama.yaml", "# GPU: NVIDIA H100 in our tests",
                           "GPU: NVIDIA driver missing", "8x 191.98GB"}) {
    const ExtractedLog log = read(line);
    EXPECT_EQ(log.facts.gpu_name, std::nullopt) << line;
    EXPECT_EQ(log.facts.gpu_count, std::nullopt) << line;
  }
}

TEST(MachineFacts, ReadsMegatronsLayout) {
  const LoggedFacts facts = read(
                                "using world size: 64, data-parallel-size: 2, tensor-model-parallel size: 4, "
                                "pipeline-model-parallel size: 8\n")
                                .facts;
  EXPECT_EQ(facts.gpu_count, 64);
  EXPECT_EQ(facts.data_parallel, 2);
  EXPECT_EQ(facts.tensor_parallel, 4);
  EXPECT_EQ(facts.pipeline_parallel, 8);
  const LoggedFacts newer =
      read(
          "using world size: 4, data-parallel size: 1, context-parallel size: 1 tensor-model-parallel size: 4, "
          "encoder-tensor-model-parallel size: 0, pipeline-model-parallel size: 1, encoder-pipeline-model-parallel "
          "size: 0\n")
          .facts;
  EXPECT_EQ(newer.tensor_parallel, 4);
  EXPECT_EQ(newer.context_parallel, 1);
}

TEST(MachineFacts, CountsRanks) {
  EXPECT_EQ(read("WORLD INFO DICT: {'worker-0': [0, 1, 2], 'worker-1': [0, 1, 2]}\n").facts.gpu_count, 6);
  EXPECT_EQ(read("nnodes=2, num_local_procs=16, node_rank=0\n").facts.gpu_count, 32);
  EXPECT_EQ(read("  group_world_size=1\n  global_world_sizes=[8, 8, 8]\n").facts.gpu_count, 8);
  EXPECT_EQ(read("Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/12\n").facts.gpu_count, 12);
  EXPECT_EQ(read("data_parallel_world_size: 4\n").facts.gpu_count, std::nullopt);
  EXPECT_EQ(read("NeoXArgs using world size: 1 and model-parallel size: 1\nworld_size: 8\n").facts.gpu_count, 8);
  EXPECT_EQ(read("nnodes=99999999999, num_local_procs=99999999999\n").facts.gpu_count, std::nullopt);
}

TEST(MachineFacts, ParametersNeedEveryPiece) {
  const std::string layout =
      "using world size: 4, data-parallel-size: 1, tensor-model-parallel size: 2, pipeline-model-parallel size: 2\n";
  const auto piece = [](const char* place, const char* count) {
    return std::string(" > number of parameters on (tensor, pipeline) model parallel rank (") + place + "): " + count +
           "\n";
  };
  const std::string three = layout + piece("0, 0", "100") + piece("1, 0", "101") + piece("0, 1", "200");
  EXPECT_EQ(read(three).facts.parameters, std::nullopt);
  const ExtractedLog all = read(three + piece("1, 1", "202"));
  EXPECT_EQ(all.facts.parameters, 603);
  EXPECT_EQ(all.notes.size(), 1u);
  EXPECT_EQ(read(three + "Total number of parameters in billions: 15.78\n").facts.parameters, 15'780'000'000);
  EXPECT_EQ(
      read(layout + piece("0, 0", "5") + piece("0, 0", "5") + piece("0, 0", "5") + piece("0, 0", "5")).facts.parameters,
      std::nullopt);
}

TEST(MachineFacts, ReadsGluedMemoryLines) {
  const ExtractedLog log = read(
      "[Rank 2] (after 20 iterations) memory (MB) | allocated: 1786.5 | max allocated: 4673.0 | reserved: 4746.0 | "
      "max reserved: 4747.0[Rank 1] (after 20 iterations) memory (MB) | allocated: 10 | max allocated: 20 | "
      "reserved: 30 | max reserved: 40\n");
  ASSERT_EQ(log.memory_gb.size(), 8u);
  EXPECT_NEAR(log.memory_gb.at({2, MemoryKind::allocated}), 1786.5 * 1048576 / 1e9, 1e-9);
  EXPECT_NEAR(log.memory_gb.at({2, MemoryKind::peak_reserved}), 4747.0 * 1048576 / 1e9, 1e-9);
  EXPECT_NEAR(log.memory_gb.at({1, MemoryKind::peak_allocated}), 20 * 1048576.0 / 1e9, 1e-9);
}

TEST(MachineFacts, LightningCountsTheProcessesThatItStarts) {
  EXPECT_EQ(read("All distributed processes registered. Starting with 8 processes\n").facts.gpu_count, 8);
}

TEST(MachineFacts, ReadsVersions) {
  const LoggedFacts facts = read(
                                "torch version .................... 2.3.1+rocm6.0\n"
                                "deepspeed info ................... 0.14.2, unknown, unknown\n"
                                "torch cuda version ............... None\n"
                                "torch hip version ................ 6.0.32830\n")
                                .facts;
  EXPECT_EQ(facts.pytorch_version, "2.3.1+rocm6.0");
  EXPECT_EQ(facts.stack_version, "6.0.32830");
  EXPECT_EQ(facts.platform, Platform::amd);
  EXPECT_EQ(read("NCCL version 2.18.3+cuda12.1\n").facts.platform, Platform::nvd);
  EXPECT_EQ(read("RCCL version 2.18.3+hip6.0 HEAD:abc\n").facts.platform, Platform::amd);
  EXPECT_EQ(read("this needs PyTorch version 2 or later, torch version unknown\n").facts.pytorch_version, std::nullopt);
}

}  // namespace
}  // namespace tprimat::logs
