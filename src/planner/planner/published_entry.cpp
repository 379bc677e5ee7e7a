#include "planner/published_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "base/error.h"
#include "planner/interval.h"
#include "planner/published_workload.h"
#include "planner/row_experts.h"
#include "published/built_in_tables.h"
#include "published/cells.h"
#include "published/columns.h"
#include "published/readings.h"
#include "published/row_inputs.h"
#include "spec/model_catalogue.h"
#include "text/choice.h"

namespace tprimat::planner {
namespace {

// Printed, or what rate, step time and batch agree on: a length of 0 is not known.
SequenceChoice length_of(const RowInputs& inputs) {
  const auto plain = std::ranges::find(inputs.sequences, "", &SequenceChoice::deviation);
  return plain != inputs.sequences.end() ? *plain : SequenceChoice{};
}

// A rate that the row prints, or that follows from its step time without further assumptions. What is printed of a GPU
// comes before the rate of the job, and both before the step time.
std::optional<RateChoice> plain_rate(const RowInputs& inputs, int64_t length) {
  for (const std::string_view from : {"tokens/s per GPU", "tokens/s", "step time", "time for"})
    for (const RateChoice& rate : inputs.rates)
      if (rate.deviation.empty() && rate.from.starts_with(from) &&
          (rate.sequence_length == 0 || rate.sequence_length == length))
        return rate;
  return std::nullopt;
}

void find_rate(PublishedFigures& figures, const PublishedRow& row, const RowInputs& inputs, int64_t length) {
  if (const auto rate = plain_rate(inputs, length)) {
    const auto printed = parse_printed(row.cell("tokens_per_s_per_gpu"));
    figures.tokens_per_second_per_gpu = printed ? printed->value : rate->tokens_per_second_per_gpu.middle();
    figures.rate_from = rate->from;
    return;
  }
  if (length == 0) return;
  const PublishedWorkload read = read_published_workload(row);
  if (read.tokens_per_second_per_gpu <= 0) return;
  figures.tokens_per_second_per_gpu = read.tokens_per_second_per_gpu;
  figures.rate_from = row.cell("tflops_per_gpu").empty() ? "MFU" : "TFLOP/s";
}

// Of the datasheet. Without a printed precision only where 16 bits are the GPU's shortest format.
const PeakChoice* plain_peak(const RowInputs& inputs) {
  if (inputs.peaks.empty()) return nullptr;
  const PeakChoice& first = inputs.peaks.front();
  constexpr std::string_view k_sixteen_bit_parts[] = {"A100", "V100", "MI250X"};
  const bool is_certain =
      first.deviation == "assumed_precision" &&
      std::ranges::any_of(k_sixteen_bit_parts, [&](auto part) { return first.id.starts_with(part); });
  return first.deviation.empty() || is_certain ? &first : nullptr;
}

// Frozen weights are no assumption: the row says that it trains adapters.
std::vector<std::string> assumptions_of(const FlopReading& reading) {
  std::vector<std::string> left = reading.deviations;
  std::erase(left, "frozen_weights");
  return left;
}

bool is_point(const FlopReading& reading) {
  return reading.flops_per_token.low == reading.flops_per_token.high && reading.flops_per_token.low > 0;
}

// Each convention once, by the reading with the fewest assumptions about the shape.
std::vector<CountedMfu> count_mfu(const RowInputs& inputs, const SequenceChoice& length, double achieved_per_flop) {
  std::vector<FlopReading> readings = model_readings(inputs, length);
  std::erase_if(readings, [](const FlopReading& each) { return !is_point(each); });
  std::ranges::stable_sort(readings, {}, [](const FlopReading& each) { return assumptions_of(each).size(); });
  std::vector<CountedMfu> counted;
  for (const FlopReading& each : readings)
    if (std::ranges::find(counted, each.convention, &CountedMfu::convention) == counted.end())
      counted.push_back({each.convention, each.flops_per_token.low, each.flops_per_token.low * achieved_per_flop,
                         assumptions_of(each)});
  return counted;
}

bool contradicts_itself(const PublishedRow& row) { return row.cell("notes").find("CHECK") != std::string::npos; }

std::string missing_mfu(const PublishedRow& row, const PublishedFigures& figures, const RowInputs& inputs,
                        const SequenceChoice& length) {
  if (contradicts_itself(row)) return "marked CHECK: its figures contradict each other";
  if (row.cell("reading") == "one_layer") return "the row is about a single layer";
  if (length.length == 0) return "the row prints no sequence length";
  if (!figures.tokens_per_second_per_gpu) return "no rate";
  const std::string& precision = row.cell("precision");
  if (!figures.peak && precision.empty()) return "the row prints no precision";
  if (!figures.peak) return fmt::format("the hardware catalogue has no {} peak of {}", precision, row.cell("gpu"));
  return inputs.missing;
}

std::string_view kind_of(const PublishedRow& row, const RowInputs& inputs) {
  if (inputs.shape && inputs.shape->mamba) return "hybrid";
  const bool has_experts = count_cell(row, "ep").value_or(1) > 1 || !inputs.counted_by_framework.empty();
  if (has_experts || (inputs.shape && inputs.shape->experts)) return "sparse";
  return inputs.shape ? "dense" : "";
}

std::string printed_layout(const PublishedRow& row) {
  std::string text;
  for (const std::string_view size : {"tp", "pp", "vp", "cp", "ep", "dp"})
    if (const auto count = count_cell(row, size); count && *count > 1)
      text += fmt::format("{}{}{}", text.empty() ? "" : " ", size, *count);
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

// Of the model that the row is named for. 0: no catalogue has it, or has another width.
int64_t layers_of_model(const PublishedRow& row, const RowInputs& inputs) {
  if (inputs.own_layers != 0) return inputs.own_layers;
  const auto known = find_counted_model(row.cell("model"));
  const auto hidden = count_cell(row, "hidden");
  return known && hidden.value_or(known->spec.hidden_size) == known->spec.hidden_size ? known->spec.num_layers : 0;
}

// By the model's own layers, by the notes, or by the name: "Llama 3 8B (4 layers)".
bool is_proxy(const PublishedRow& row, const RowInputs& inputs) {
  const auto layers = count_cell(row, "layers");
  return (layers && *layers < layers_of_model(row, inputs)) || mentions(lower_text(row.cell("notes")), "proxy") ||
         row.cell("reading") == "one_layer" || !find_in_cell(row, "model", "[(]([0-9]{1,4}) layers").empty();
}

// What the notes leave open stays open.
std::string name_routing(const PublishedRow& row) {
  if (mentions(lower_text(row.cell("notes")), "routing not stated")) return "";
  const auto routing = noted_routing(row);
  return routing ? std::string(enum_name(*routing)) : "";
}

std::optional<double> figure_in(const PublishedRow& row, std::string_view column) {
  const auto printed = parse_printed(row.cell(column));
  return printed ? std::optional<double>(printed->value) : std::nullopt;
}

// Of tokens/s, whose bounds are the reciprocals of those of the step time.
void find_interval(PublishedDetails& details, const PublishedRow& row, const ParameterSet& parameters) {
  if (!details.planned.predicted) return;
  const PublishedWorkload read = read_published_workload(row);
  const PredictionInterval interval = prediction_interval(read.workload, read.machine, parameters);
  if (!interval.is_known()) return;
  details.predicted_low = *details.planned.predicted / interval.high;
  details.predicted_high = *details.planned.predicted / interval.low;
  details.interval_basis = interval.basis;
}

}  // namespace

PublishedFigures derive_figures(const PublishedRow& row) {
  PublishedFigures figures;
  const RowInputs inputs = read_inputs(row);
  const SequenceChoice length = length_of(inputs);
  if (row.cell("reading") != "one_layer") find_rate(figures, row, inputs, length.length);
  figures.minutes_to_target = figure_in(row, "ttt_min_olympic_mean");
  const PeakChoice* peak = plain_peak(inputs);
  if (peak != nullptr) figures.peak = peak->id;
  if (figures.tokens_per_second_per_gpu && peak != nullptr && length.length > 0 && !contradicts_itself(row))
    figures.mfu = count_mfu(inputs, length, *figures.tokens_per_second_per_gpu / peak->flops_per_second);
  if (figures.mfu.empty()) figures.missing = missing_mfu(row, figures, inputs, length);
  return figures;
}

PublishedEntry read_published_entry(const PublishedRow& row, const std::string& table) {
  PublishedEntry entry;
  entry.table = table;
  constexpr std::pair<const char*, std::string PublishedEntry::*> k_cells[] = {
      {"id", &PublishedEntry::id},
      {"model", &PublishedEntry::model},
      {"gpu", &PublishedEntry::gpu},
      {"framework", &PublishedEntry::framework},
      {"precision", &PublishedEntry::precision},
      {"reading", &PublishedEntry::reading},
      {"reach", &PublishedEntry::reach},
      {"source", &PublishedEntry::source},
      {"notes", &PublishedEntry::notes}};
  for (const auto& [column, member] : k_cells) entry.*member = row.cell(column);
  const RowInputs inputs = read_inputs(row);
  entry.kind = kind_of(row, inputs);
  if (entry.kind == "sparse") entry.routing = name_routing(row);
  entry.layers = count_cell(row, "layers");
  entry.proxy = is_proxy(row, inputs);
  entry.layout = printed_layout(row);
  entry.link = source_link(row);
  entry.gpus = count_cell(row, "n_gpus");
  entry.sequence_length = count_cell(row, "seq");
  entry.global_batch = count_cell(row, "gbs");
  const PublishedFigures figures = derive_figures(row);
  entry.tokens_per_second_per_gpu = figures.tokens_per_second_per_gpu;
  entry.tflops_per_gpu = figure_in(row, "tflops_per_gpu");
  entry.minutes_to_target = figures.minutes_to_target;
  const auto causal = std::ranges::find(figures.mfu, "causal", &CountedMfu::convention);
  if (causal != figures.mfu.end()) entry.mfu = causal->mfu;
  return entry;
}

PublishedDetails describe_published_row(const std::string& id, const ParameterSet& parameters) {
  std::vector<std::string> ids;
  for (const PublishedTable& table : built_in_tables())
    for (const PublishedRow& row : table.rows) {
      ids.push_back(row.cell("id"));
      if (row.cell("id") != id) continue;
      PublishedDetails details{id, table.name, source_link(row), {row.cells.begin(), row.cells.end()}, {}, {}};
      details.derived = derive_figures(row);
      details.planned = plan_table({table.name, {row}}, parameters).rows.front();
      find_interval(details, row, parameters);
      return details;
    }
  throw Error(Problem{fmt::format("no published result has the id '{}'", printable(id.substr(0, 64))), "ID",
                      suggest_word_or(id, ids, "see tprimat published list")});
}

}  // namespace tprimat::planner
