#include "planner/row_memory.h"

#include <string>

#include "published/cells.h"
#include "published/row_inputs.h"

namespace tprimat::planner {
namespace {

constexpr double k_gib = 1073741824.0, k_gb = 1e9;

bool is_of_primus(const PublishedRow& row) { return mentions(lower_text(row.cell("framework")), "primus"); }

// torchtitan's log counts GiB, and so do Primus' figures of the driver, whatever tables call them.
bool counts_binary(const PublishedWorkload& read, const PublishedRow& row, const std::string& unit) {
  if (unit.starts_with("gib") || read.workload.family->operator_recompute) return true;
  return is_of_primus(row) && !mentions(unit, "allocated");
}

// Bytes that one of the unit stands for; nothing where it is none of memory.
double bytes_of_unit(const PublishedWorkload& read, const PublishedRow& row, const std::string& unit) {
  const double binary = is_of_primus(row) ? k_gib / k_gb : 1;  // the driver's figure of AMD's parts
  if (unit.starts_with("percent of hbm")) return read.machine.memory_bytes * binary / 100;
  if (const auto of = find_in_cell(row, "mem_unit", "percent of ([1-9][0-9]{0,3}) GB"); !of.empty())
    return std::stod(of[0]) * k_gb * binary / 100;
  if (unit.starts_with("gb") || unit.starts_with("gib")) return counts_binary(read, row, unit) ? k_gib : k_gb;
  return 0;
}

// torchtitan and nanotron log what the allocator reserves, Megatron-Bridge and NeMo the peak of what it gave away, and
// Primus under Megatron what the driver says; BigScience's figures are nvidia-smi's.
MemoryFigure figure_of(const PublishedWorkload& read, const PublishedRow& row, const std::string& unit) {
  const Family& family = *read.workload.family;
  if (mentions(unit, "allocated")) return MemoryFigure::allocated;
  if (mentions(unit, "driver") || mentions(unit, "percent") || family.deepspeed_states) return MemoryFigure::device;
  if (family.operator_recompute || family.id == "nanotron") return MemoryFigure::reserved;
  return is_of_primus(row) ? MemoryFigure::device : MemoryFigure::allocated;
}

bool sums_in_16_bits(const std::string& program) {
  return mentions(program, "megatron-bridge") || mentions(program, "nemo") || mentions(program, "mlperf");
}

// MLPerf's callback prints torch.cuda.max_memory_allocated of the first rank; the writer of Megatron-Bridge's figures
// is the last one.
MemoryStage stage_of(const PublishedRow& row, const std::string& unit) {
  if (mentions(unit, "max_memory_usage")) return MemoryStage::first;
  return mentions(lower_text(row.cell("framework")), "megatron-bridge") ? MemoryStage::last : MemoryStage::heaviest;
}

}  // namespace

// NVIDIA's recipes of NeMo and Megatron-Bridge sum gradients in 16 bits (grad_reduce_in_fp32 = false). Its submissions
// to MLPerf keep weights in FP8 alone (fp8_param_gather), of which Hopper's products need a transposed copy. torchtitan
// compiles the loss since 2025.
void read_memory_settings(PublishedWorkload& read, const PublishedRow& row) {
  Workload& workload = read.workload;
  const std::string program = lower_text(row.cell("framework")), source = row.cell("source").substr(0, 300);
  if (!workload.family->own_trainer && sums_in_16_bits(program)) workload.gradient_bytes = k_half_bytes;
  const bool low = workload.precision == PlanPrecision::fp8 || workload.precision == PlanPrecision::fp4;
  const bool narrow = low && mentions(program, "mlperf");
  const bool turns = read.machine.architecture.starts_with("hopper");
  if (narrow) workload.weight_bytes = turns && !workload.trains_adapters ? 2 : 1;
  // FP8_ACT=1 in all its LoRA configurations that do not cut the sequence (mlcommons/training_results_v5.0 at 0fdc28f)
  const Layout& layout = workload.layout;
  workload.stores_narrow = narrow && workload.trains_adapters && layout.context * layout.tensor == 1;
  if (const auto share = find_in_notes(row, "(100|[1-9]?[0-9])% of the optimizer on the CPU"); !share.empty())
    workload.offloaded_moments = std::stod(share[0]) / 100;
  // torchao's table of H100 was measured with torchtitan 0.0.2 (docs/source/workflows/training.md at 36027d8)
  const bool early = mentions(source, "pytorch/ao") && read.machine.architecture == "hopper";
  workload.compiled_loss = !early && !mentions(source, "_2024") && !mentions(source, "2410.06511");
}

void read_memory(PublishedWorkload& read, const PublishedRow& row) {
  const std::string unit = lower_text(row.cell("mem_unit").substr(0, 100));
  const std::string notes = row.cell("notes").substr(0, 1000), cell = row.cell("mem");
  read.out_of_memory = cell == "OOM" || mentions(unit, "oom");
  const auto printed = parse_printed(cell.starts_with('~') ? cell.substr(1) : cell);
  if (!printed || read.out_of_memory) return;
  const bool activations = notes.find("ACTIVATION memory") != std::string::npos;
  if (activations && unit == "percent of tensor-parallel baseline") read.activation_share = printed->value / 100;
  const double bytes = printed->value * bytes_of_unit(read, row, unit);
  if (bytes <= 0) return;
  (activations ? read.activation_bytes : read.memory_bytes) = bytes;
  read.memory_reading = {figure_of(read, row, unit), stage_of(row, unit)};
}

}  // namespace tprimat::planner
