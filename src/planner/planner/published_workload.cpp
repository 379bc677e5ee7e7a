#include "planner/published_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/row_layout.h"
#include "planner/row_shape.h"
#include "published/cells.h"
#include "published/notes.h"
#include "published/printed.h"
#include "spec/flop_breakdown.h"

namespace tprimat::planner {
namespace {

// Where nothing is printed: fp16 of the programs of before 2022, bf16 of the others.
std::optional<PlanPrecision> precision_of(const PublishedRow& row, const Family& family) {
  const std::string text = lower_text(row.cell("precision"));
  if (mentions(text, "fp4")) return PlanPrecision::fp4;
  if (mentions(text, "fp8") || mentions(text, "float8")) return PlanPrecision::fp8;
  if (mentions(text, "fp16")) return PlanPrecision::fp16;
  if (text.empty() && mentions(lower_text(row.cell("framework")), "megatron-bridge")) return PlanPrecision::fp8;
  if (text.empty()) return family.dropout ? PlanPrecision::fp16 : PlanPrecision::bf16;
  if (mentions(text, "bf16") || mentions(text, "bfloat16")) return PlanPrecision::bf16;
  return std::nullopt;
}

// The length that rate, time and batch of a step agree on.
std::optional<int64_t> following_length(const PublishedRow& row) {
  const auto whole = parse_printed(row.cell("tokens_per_s")), step = parse_printed(row.cell("step_time_s"));
  const auto batch = count_cell(row, "gbs");
  if (!whole || !step || !batch) return std::nullopt;
  constexpr double k_grain = 512, k_max_off = 0.02, k_longest = 1 << 24;
  const double length = whole->value * step->value / static_cast<double>(*batch);
  const double round = std::round(length / k_grain) * k_grain;
  if (round < k_grain || length > k_longest || std::fabs(length / round - 1) > k_max_off) return std::nullopt;
  return static_cast<int64_t>(round);
}

int64_t assume_length(const PublishedRow& row, const Workload& workload) {
  const int64_t own = workload.shape.model.max_position_embeddings;
  if (workload.family->operator_recompute) return 8192;  // torchtitan's configurations of Llama 3
  return own > 1 ? std::min<int64_t>(own, 8192) : mentions(lower_text(row.cell("model")), "gpt-3") ? 2048 : 1024;
}

void read_recompute(Workload& workload, const PublishedRow& row) {
  const std::string text = lower_text(row.cell("recompute"));
  Recompute& recompute = workload.layout.recompute;
  if (text.starts_with("full")) recompute = Recompute::full;
  if (text.starts_with("selective")) recompute = Recompute::selective;
  // Every second layer whole, in torchtitan's words.
  if (text == "selective layer") workload.recomputed_share = 1.2;
  // Megatron-LM of before 2205.05198 repeated all layers.
  if (text.empty() && workload.family->dropout) recompute = Recompute::full;
  // torchtitan's configurations keep every second product.
  if (text.empty() && workload.family->operator_recompute) recompute = Recompute::selective;
  // Sequence parallelism came with that paper.
  workload.layout.sequence_parallel = !workload.family->dropout || recompute == Recompute::selective;
  // Its tables of activation memory say it apart.
  const std::string notes = lower_text(row.cell("notes"));
  if (mentions(notes, "sequence parallel only")) workload.layout.sequence_parallel = true;
  if (mentions(notes, "selective only") || mentions(notes, "no sequence parallel"))
    workload.layout.sequence_parallel = false;
}

void read_release(Workload& workload, const PublishedRow& row) {
  auto found = find_in_notes(row, "release ([0-9][0-9.]{1,15})");
  if (found.empty()) found = find_in_cell(row, "framework", "([0-9]{2}\\.[0-9.]{2,8})");
  if (!found.empty()) workload.release = found[0];
}

// How a program's authors count the FLOPs of a rate that they print instead of tokens.
double printed_flops_per_token(const Workload& workload, bool utilisation) {
  BreakdownOptions options{workload.sequence_length, workload.family->id == "meta", 0};
  const FlopBreakdown parts = break_down(workload.shape, options);
  const bool repeated = workload.family->dropout && !utilisation;  // arXiv 2104.04473, eq. 3
  return repeated ? hardware_flops(parts, Recompute::full) : parts.total();
}

std::optional<double> printed_rate(const PublishedWorkload& read, const PublishedRow& row, int64_t gpus) {
  const Workload& workload = read.workload;
  const auto each = parse_printed(row.cell("tokens_per_s_per_gpu")), whole = parse_printed(row.cell("tokens_per_s"));
  const auto step = parse_printed(row.cell("step_time_s")), flops = parse_printed(row.cell("tflops_per_gpu"));
  const auto mfu = parse_printed(row.cell("mfu_pct"));
  if (each) return each->value;
  if (whole) return whole->value / static_cast<double>(gpus);
  if (step)
    return static_cast<double>(workload.global_batch) * static_cast<double>(workload.sequence_length) / step->value /
           static_cast<double>(gpus);
  if (flops) return flops->value * 1e12 / printed_flops_per_token(workload, false);
  if (mfu) return mfu->value / 100 * read.machine.peak(workload.precision) / printed_flops_per_token(workload, true);
  return std::nullopt;
}

void read_memory(PublishedWorkload& read, const PublishedRow& row) {
  constexpr double k_gib = 1073741824.0, k_gb = 1e9;
  const std::string unit = row.cell("mem_unit"), notes = row.cell("notes").substr(0, 1000);
  read.out_of_memory = row.cell("mem") == "OOM";
  const auto printed = parse_printed(row.cell("mem"));
  if (!printed) return;
  const bool activations = notes.find("ACTIVATION memory") != std::string::npos;
  if (unit == "GiB" || unit == "GB")
    (activations ? read.activation_bytes : read.memory_bytes) = printed->value * (unit == "GiB" ? k_gib : k_gb);
  else if (activations && unit == "percent of tensor-parallel baseline")
    read.activation_share = printed->value / 100;
}

bool read_program(PublishedWorkload& read, const PublishedRow& row) {
  const auto machine = find_printed_machine(row.cell("gpu"));
  const Family* family = find_printed_family(row.cell("framework"));
  const auto precision = family != nullptr ? precision_of(row, *family) : std::nullopt;
  if (!machine)
    read.missing = "no such GPU in the planner's list";
  else if (family == nullptr)
    read.missing = "no such framework in the planner's list";
  else if (!precision || machine->peak(*precision) <= 0)
    read.missing = "no known peak for its precision";
  if (!read.missing.empty()) return false;
  read.machine = *machine;
  read.workload.family = family;
  read.workload.precision = *precision;
  return true;
}

void read_details(Workload& workload, const PublishedRow& row) {
  const std::string notes = lower_text(row.cell("notes"));
  workload.asynchronous_tensor = !workload.family->operator_recompute || mentions(notes, "async");
  const std::string precision = lower_text(row.cell("precision"));
  workload.scaled_by_row = mentions(precision, "rowwise");
  // Megatron-Bridge prints "per tensor (MX)" in one cell.
  workload.scaled_by_block = mentions(precision, "mx") || mentions(notes, "second (parenthesised) figure");
  workload.compiled = !workload.family->operator_recompute || mentions(notes, "compile") || mentions(notes, "async");
  read_recompute(workload, row);
  read_release(workload, row);
}

}  // namespace

PublishedWorkload read_published_workload(const PublishedRow& row) {
  PublishedWorkload read;
  const auto gpus = count_cell(row, "n_gpus");
  if (!gpus) read.missing = "no number of GPUs";
  if (!gpus || !read_program(read, row) || !read_row_shape(read, row)) return read;
  if (const auto length = count_cell(row, "seq")) {
    read.workload.sequence_length = *length;
  } else {
    read.workload.sequence_length = following_length(row).value_or(assume_length(row, read.workload));
    read.assumptions.push_back(fmt::format("SL {}", read.workload.sequence_length));
  }
  if (!read_row_layout(read, row, *gpus) || !read_row_batch(read, row)) return read;
  read_details(read.workload, row);
  read_memory(read, row);
  if (const auto rate = printed_rate(read, row, *gpus))
    read.tokens_per_second_per_gpu = *rate;
  else
    read.missing = "no rate";
  return read;
}

}  // namespace tprimat::planner
