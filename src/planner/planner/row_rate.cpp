#include "planner/row_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/row_experts.h"
#include "published/cells.h"
#include "published/framework_formulas.h"
#include "spec/flop_breakdown.h"

namespace tprimat::planner {
namespace {

constexpr int64_t k_max_batch = int64_t{1} << 30;  // sequences per step; more is no training's

// Tokens per second of the whole job.
std::optional<double> job_rate(const PublishedRow& row) {
  if (const auto whole = parse_printed(row.cell("tokens_per_s"))) return whole->value;
  const auto each = parse_printed(row.cell("tokens_per_s_per_gpu"));
  const auto gpus = count_cell(row, "n_gpus");
  if (!each || !gpus) return std::nullopt;
  return each->value * static_cast<double>(*gpus);
}

// The length that rate, time and batch of a step agree on.
std::optional<int64_t> length_of_tokens(const PublishedRow& row) {
  const auto whole = job_rate(row);
  const auto step = parse_printed(row.cell("step_time_s"));
  const auto batch = count_cell(row, "gbs");
  if (!whole || !step || !batch) return std::nullopt;
  constexpr double k_grain = 512, k_max_off = 0.02, k_longest = 1 << 24;
  const double length = *whole * step->value / static_cast<double>(*batch);
  const double round = std::round(length / k_grain) * k_grain;
  if (round < k_grain || length > k_longest || std::fabs(length / round - 1) > k_max_off) return std::nullopt;
  return static_cast<int64_t>(round);
}

// Of a sparse model, whose TFLOP/s are Megatron's: the usual length that they agree with.
std::optional<int64_t> length_of_flops(const PublishedRow& row, const ModelSpec& shape) {
  const auto step = parse_printed(row.cell("step_time_s")), flops = parse_printed(row.cell("tflops_per_gpu"));
  const auto batch = count_cell(row, "gbs"), gpus = count_cell(row, "n_gpus");
  if (!step || !flops || !batch || !gpus || !shape.experts) return std::nullopt;
  constexpr double k_max_off = 0.03;
  for (const int64_t length : {4096, 8192, 2048, 16384, 32768}) {
    const double tokens = static_cast<double>(*batch) * static_cast<double>(length) / static_cast<double>(*gpus);
    const double counted = megatron_flops(shape, length, count_cell(row, "tp").value_or(1)) * tokens / step->value;
    if (std::fabs(counted / (flops->value * 1e12) - 1) < k_max_off) return length;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> following_length(const PublishedRow& row, const ModelSpec& shape) {
  const auto length = length_of_tokens(row);
  return length ? length : length_of_flops(row, shape);
}

bool prints_memory_alone(const PublishedRow& row) {
  return !row.cell("mem").empty() && row.cell("gbs").empty() && row.cell("ga").empty() &&
         row.cell("tokens_per_s").empty() && row.cell("tokens_per_s_per_gpu").empty() &&
         row.cell("tflops_per_gpu").empty() && row.cell("mfu_pct").empty();
}

int64_t assume_length(const PublishedRow& row, const PublishedWorkload& read) {
  const Workload& workload = read.workload;
  if (const auto usual = read.usual != nullptr ? read.usual->count("length") : std::nullopt) return *usual;
  if (workload.shape.experts) return 4096;  // of the recipes of sparse models
  const int64_t own = workload.shape.max_position_embeddings;
  if (workload.family->operator_recompute) return 8192;  // torchtitan's configurations of Llama 3
  return own > 1 ? std::min<int64_t>(own, 8192) : mentions(lower_text(row.cell("model")), "gpt-3") ? 2048 : 1024;
}

namespace {

// Where rate, time and length of a step leave a whole number of sequences.
std::optional<int64_t> following_batch(const PublishedRow& row, const Workload& workload) {
  const auto whole = job_rate(row);
  const auto step = parse_printed(row.cell("step_time_s"));
  if (!whole || !step) return std::nullopt;
  constexpr double k_max_off = 0.01;
  const double batch = *whole * step->value / static_cast<double>(workload.sequence_length), round = std::round(batch);
  if (round < 1 || round > static_cast<double>(k_max_batch) || std::fabs(batch / round - 1) > k_max_off)
    return std::nullopt;
  return static_cast<int64_t>(round);
}

}  // namespace

int64_t read_global_batch(const PublishedRow& row, const Workload& workload) {
  const Layout& layout = workload.layout;
  if (const auto global = count_cell(row, "gbs")) return *global;
  if (const auto each = printed_number(row, "notes", "batch size per DP group ([0-9]{1,5})"))
    return std::min(*each * layout.data, k_max_batch);
  if (const auto following = following_batch(row, workload)) return *following;
  const auto micro = count_cell(row, "mbs"), steps = count_cell(row, "ga");
  const bool once = layout.pipeline == 1 || workload.family->operator_recompute;
  if (prints_memory_alone(row)) return std::min(4 * layout.pipeline * layout.data * micro.value_or(1), k_max_batch);
  if (!micro || (!steps && !once)) return 0;
  const double product = static_cast<double>(*micro) * static_cast<double>(steps.value_or(1) * layout.data);
  return product <= k_max_batch ? static_cast<int64_t>(product) : 0;
}

void assume_global_batch(PublishedWorkload& read, const PublishedRow& row) {
  Workload& workload = read.workload;
  const Layout& layout = workload.layout;
  const bool rated = job_rate(row) || parse_printed(row.cell("tflops_per_gpu")) || parse_printed(row.cell("mfu_pct"));
  if (!rated) return;
  constexpr int64_t k_fill = 8;
  const auto micro = static_cast<double>(count_cell(row, "mbs").value_or(1));
  const auto steps = static_cast<double>(layout.pipeline > 1 ? k_fill * layout.pipeline : 1);
  const double batch = micro * steps * static_cast<double>(layout.data);
  if (batch > static_cast<double>(k_max_batch)) return;
  workload.global_batch = static_cast<int64_t>(batch);
  read.assumptions.push_back(fmt::format("GBS {}", workload.global_batch));
  if (layout.pipeline > 1) read.weak = "its batch is not printed";
}

// Where the micro-batch is not printed: the largest power of two up to 4 that keeps a pipeline four times full.
int64_t assume_micro_batch(const Workload& workload) {
  const Layout& layout = workload.layout;
  const int64_t per_rank = workload.global_batch / layout.data;
  const int64_t most = std::min<int64_t>(4, layout.pipeline > 1 ? per_rank / (4 * layout.pipeline) : per_rank);
  int64_t size = 1;
  if (workload.shape.experts && (layout.pipeline > 1 || workload.sequence_length > 8192)) return size;
  while (2 * size <= most) size *= 2;
  return size;
}

namespace {

// How a program's authors count the FLOPs of a rate that they print instead of tokens.
double printed_flops_per_token(const Workload& workload, bool utilisation) {
  // torchtitan counts attention in full.
  if (workload.shape.experts && workload.family->operator_recompute)
    return break_down(workload.shape, {workload.sequence_length, false, 0}).total();
  if (workload.shape.experts) return megatron_flops(workload.shape, workload.sequence_length, workload.layout.tensor);
  BreakdownOptions options{workload.sequence_length, workload.family->id == "meta", 0};
  const FlopBreakdown parts = break_down(workload.shape, options);
  const bool repeated = workload.family->dropout && !utilisation;  // arXiv 2104.04473, eq. 3
  return repeated ? hardware_flops(parts, Recompute::full) : parts.total();
}

}  // namespace

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

}  // namespace tprimat::planner
