#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "result/probe_report.h"
#include "spec/names.h"

namespace tprimat::planner {

// Number formats of the matrix products that a plan knows: those that trainings run, and the four-bit formats of
// published ones, for which the hardware catalogue states no peak of its own. fp32 of the own trainer alone.
enum class PlanPrecision { bf16, fp16, fp8, fp4, fp32 };

// All nodes wait for the slowest; as published trainings count them, a node has so many GPUs.
inline constexpr double k_gpus_per_node = 8;

// What a probe measured on a node like those that are planned for (planner/machine_from_probe.h), in place of the
// calibrated share of a figure of the catalogue. Absent: not measured.
struct MeasuredRates {
  std::optional<double> product_16, product_8;        // FLOP/s that large products reach
  std::optional<double> saturation_16, saturation_8;  // dimension at which a product reaches half of that
  std::optional<double> attention;                    // FLOP/s of the attention core
  std::optional<double> memory;                       // bytes/s of element-wise kernels
  std::optional<double> link;        // bytes/s of sums and gathers inside a domain, as bus bandwidth of nccl-tests
  std::optional<double> all_to_all;  // the same of the exchange of experts' tokens
};

// One accelerator and what connects it to others, from src/planner/planner/machines.tsv and the hardware catalogue.
struct Machine {
  std::string id;            // "H100-SXM-80GB"
  std::string architecture;  // scope of calibrated parameters: "hopper"
  double peak_16 = 0;        // dense, bf16 or fp16, FLOP/s
  bool has_bf16 = true;
  double peak_8 = 0;  // 0: the part has no such products
  double peak_4 = 0;
  double peak_32 = 0;   // of a processor
  bool widens = false;  // a processor that multiplies 16-bit numbers in fp32
  double memory_bytes = 0;
  double memory_bandwidth = 0;   // bytes/s
  double link_bandwidth = 0;     // NVLink or xGMI, bytes/s per GPU and direction, all links of a GPU
  int64_t mesh_links = 0;        // links that join a GPU with each other one of its domain; 0: they go through a switch
  double pair_bandwidth = 0;     // between the two GPUs of one card, where they have links of their own
  double network_bandwidth = 0;  // between nodes, bytes/s per GPU and direction
  int64_t gpus_per_domain = 8;   // GPUs that the fast links join
  int64_t cores = 0;             // of a processor, which all ranks share; 0: each rank has a device of its own
  MeasuredRates measured = {};

  double peak(PlanPrecision precision) const;  // FLOP/s; 0 where the part has no such products

  // What a collective among so many GPUs of a domain has of the links, bytes/s per GPU and direction: without a switch
  // only those to the other members.
  double link_bandwidth_among(int64_t ranks) const;
};
const std::vector<Machine>& machines();

// By id or a word of machines.tsv, whatever its case and punctuation; nothing for others.
const Machine* find_machine(std::string_view name);

// In the looser spelling of tables ("DGX-GB200", "H100-SXM 96GB HBM2e 2.4TB/s 500W"): the longest word that occurs
// wins. Nothing for a part that only shares its beginning with a listed one (A100 PCIe, H100 NVL, GH200).
const Machine* find_printed_machine(std::string_view name);

// A processor as measured: figures of all its usable threads together.
struct ProcessorFacts {
  std::string name;
  int64_t threads = 1;
  double peak_16 = 0, peak_32 = 0;  // of matrix products, FLOP/s; 0: not measured
  bool widens = false;              // 16-bit numbers are multiplied in fp32, so peak_16 is that of fp32
  double memory_bandwidth = 0;      // STREAM's triad, bytes/s
  double memory_bytes = 0;
};
Machine processor_machine(const ProcessorFacts& facts);

// Nothing where the report has no product. The machine's memory is not in it.
std::optional<ProcessorFacts> processor_facts(const ProbeReport& report);

}  // namespace tprimat::planner
