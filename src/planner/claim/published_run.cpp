#include "claim/published_run.h"

#include <fmt/format.h>

#include <cmath>

#include "published/built_in_tables.h"
#include "published/cells.h"

namespace tprimat::planner {
namespace {

constexpr int64_t k_usual_vocabulary = 51200;  // GPT-2's, padded by Megatron-LM

// Where the planner does not know the program, which it needs for this.
std::optional<PlanPrecision> read_precision(const PublishedRow& row) {
  const std::string text = lower_text(row.cell("precision"));
  if (mentions(text, "fp4")) return PlanPrecision::fp4;
  if (mentions(text, "fp8") || mentions(text, "float8")) return PlanPrecision::fp8;
  if (mentions(text, "fp16") || mentions(text, "float16")) return PlanPrecision::fp16;
  if (text.empty() || mentions(text, "bf16") || mentions(text, "bfloat16")) return PlanPrecision::bf16;
  return std::nullopt;
}

std::optional<Routing> read_routing(const PublishedRow& row) {
  const std::string notes = lower_text(row.cell("notes"));
  if (mentions(notes, "real routing") || mentions(notes, "learned routing")) return Routing::learned;
  if (mentions(notes, "balanced") && !mentions(notes, "not balanced")) return Routing::balanced;
  return std::nullopt;
}

std::string read_machine(RunFacts& facts, const PublishedRow& row) {
  const Machine* machine = find_printed_machine(row.cell("gpu"));
  if (machine == nullptr) return "no such GPU in the planner's list";
  facts.machine = *machine;
  return "";
}

// MLPerf's submitters train in FP8 where the GPU can.
void assume_precision(RunFacts& facts) {
  facts.precision_stated = false;
  if (mentions(lower_text(facts.framework), "mlperf") && facts.machine.peak_8 > 0) facts.precision = PlanPrecision::fp8;
}

std::string read_number_format(ReadFacts& read, const PublishedRow& row) {
  const PublishedWorkload& planned = read.planned;
  const bool known = planned.workload.family != nullptr && !planned.machine.id.empty();
  const auto precision = known ? std::optional(planned.workload.precision) : read_precision(row);
  if (!precision || read.facts.machine.peak(*precision) <= 0) return "no known peak for its precision";
  read.facts.precision = *precision;
  if (row.cell("precision").empty()) assume_precision(read.facts);
  return "";
}

// The planner finds shapes of a parameter count and a hidden size, too.
std::optional<ModelSpec> planned_shape(const PublishedWorkload& planned) {
  const bool read = planned.missing.empty() || planned.missing == "no rate";
  return read ? std::optional(planned.workload.shape) : std::nullopt;
}

std::string read_shape(ReadFacts& read, const std::optional<ModelSpec>& stated) {
  const auto shape = stated || read.inputs.shape ? stated : planned_shape(read.planned);
  if (shape) read.inputs.shape = shape, read.inputs.vocabulary_known = true;
  if (!read.inputs.shape) return read.inputs.missing.empty() ? "no model shape" : read.inputs.missing;
  RunFacts& facts = read.facts;
  facts.shape = *read.inputs.shape;
  if (!read.inputs.vocabulary_known) facts.shape.vocab_size = k_usual_vocabulary;
  const ParameterCount count = count_parameters(facts.shape);
  facts.parameters = static_cast<double>(count.total());
  facts.active_parameters = static_cast<double>(count.active());
  return "";
}

// Where no length is stated: that which other figures of the row follow from best.
int64_t following_length(const ReadFacts& read, const PublishedRow& row) {
  const auto whole = parse_printed(row.cell("tokens_per_s")), step = parse_printed(row.cell("step_time_s"));
  const auto flops = parse_printed(row.cell("tflops_per_gpu"));
  const auto batch = static_cast<double>(read.facts.global_batch), gpus = static_cast<double>(read.facts.gpus);
  double best = std::log(1.5);
  int64_t found = 0;
  for (const SequenceChoice& choice : read.inputs.sequences) {
    const auto length = static_cast<double>(choice.length);
    double off = best;
    if (whole && step && batch > 0)
      off = std::fabs(std::log(whole->value * step->value / batch / length));
    else if (flops && step && batch > 0 && gpus > 0)
      off = std::fabs(std::log(flops->value * 1e12 * step->value * gpus / batch / length /
                               flops_by({read.facts.shape, choice.length, false}, Convention::causal)));
    if (off < best) best = off, found = choice.length;
  }
  return found;
}

int64_t read_length(const ReadFacts& read, const PublishedRow& row) {
  for (const SequenceChoice& choice : read.inputs.sequences)
    if (choice.deviation.empty()) return choice.length;
  if (const int64_t length = following_length(read, row); length > 0) return length;
  if (read.planned.workload.sequence_length > 0) return read.planned.workload.sequence_length;
  return read.inputs.sequences.empty() ? 0 : read.inputs.sequences.front().length;
}

std::string first_of(const std::string& text, std::string_view ends) {
  return text.substr(0, text.find_first_of(ends));
}

}  // namespace

double RunFacts::mfu(double tokens_per_second_per_gpu) const {
  return tokens_per_second_per_gpu * flops_by(work(), Convention::causal) / peak();
}

ReadFacts read_facts(const PublishedRow& row, const std::optional<ModelSpec>& shape) {
  ReadFacts read{{}, read_inputs(row), read_published_workload(row), ""};
  RunFacts& facts = read.facts;
  facts.model = row.cell("model");
  facts.framework = row.cell("framework");
  facts.family = find_printed_family(facts.framework);
  facts.gpus = count_cell(row, "n_gpus").value_or(0);
  facts.global_batch = count_cell(row, "gbs").value_or(0);
  facts.trains_adapters = read.inputs.tuning == TuningKind::adapters;
  facts.fine_tunes = read.inputs.tuning == TuningKind::whole;
  facts.routing = read_routing(row);
  facts.recompute = read.inputs.recompute;
  facts.has_fewer_layers = read.inputs.own_layers != 0 || mentions(lower_text(row.cell("notes")), "proxy");
  read.missing = read_machine(facts, row);
  if (read.missing.empty()) read.missing = read_number_format(read, row);
  if (read.missing.empty()) read.missing = read_shape(read, shape);
  if (!read.missing.empty()) return read;
  facts.sequence_length = read_length(read, row);
  if (facts.sequence_length <= 0) read.missing = "no sequence length";
  return read;
}

std::optional<double> stated_rate(const PublishedRow& row, const RunFacts& facts) {
  const auto gpus = static_cast<double>(facts.gpus);
  if (const auto each = parse_printed(row.cell("tokens_per_s_per_gpu"))) return each->value;
  if (gpus < 1) return std::nullopt;
  if (const auto whole = parse_printed(row.cell("tokens_per_s"))) return whole->value / gpus;
  const auto step = parse_printed(row.cell("step_time_s"));
  const double tokens = static_cast<double>(facts.global_batch) * static_cast<double>(facts.sequence_length);
  return step && tokens > 0 ? std::optional(tokens / step->value / gpus) : std::nullopt;
}

std::vector<PublishedRun> read_published_runs(const std::vector<PublishedTable>& tables) {
  std::vector<PublishedRun> runs;
  for (const PublishedTable& table : tables)
    for (const PublishedRow& row : table.rows) {
      const ReadFacts read = read_facts(row);
      if (!read.missing.empty() || mentions(lower_text(row.cell("notes")), "check:")) continue;
      const double planned = read.planned.tokens_per_second_per_gpu;
      const double rate = stated_rate(row, read.facts).value_or(planned);
      if (rate <= 0) continue;
      const std::string id = row.cell("id");
      runs.push_back({read.facts, id.empty() ? fmt::format("{}:{}", table.name, row.line) : id, row.cell("source"),
                      table.name, row.line, rate, read.facts.mfu(rate)});
    }
  return runs;
}

const std::vector<PublishedRun>& built_in_runs() {
  static const std::vector<PublishedRun> runs = read_published_runs(built_in_tables());
  return runs;
}

std::string source_family(const std::string& source) { return first_of(source, "@("); }

}  // namespace tprimat::planner
