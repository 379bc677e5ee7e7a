#include "planner/own_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "planner/memory.h"
#include "planner/spec_workload.h"
#include "result/metrics.h"
#include "result/summary.h"
#include "text/format.h"
#include "text/words.h"

namespace tprimat::planner {
namespace {

struct Probes {
  const std::map<std::string, ProcessorFacts>& processors;
  const std::vector<Machine>& gpus;
};

bool is_of_processor(const RunResult& result) { return result.platform == Platform::cpu; }

int64_t ranks_of(const RunResult& result) { return device_count(result).value_or(0); }

int64_t number_in(const std::map<std::string, std::string>& environment, const std::string& key) {
  const auto found = environment.find(key);
  return found == environment.end() ? 0 : parse_number<int64_t>(found->second).value_or(0);
}

// That all ranks used together; older results say only how many they could.
int64_t threads_of(const RunResult& result) {
  const int64_t used = number_in(result.environment, "cpu_threads_used");
  return std::max<int64_t>(1, used > 0 ? used : number_in(result.environment, "cpu_threads_usable"));
}

TrainSpec spec_of(const RunResult& result) {
  const ParallelismConfig& layout = result.parallelism_config;
  TrainSpec spec;
  spec.model = *result.model_info.shape;
  spec.precision = *result.precision;
  spec.parallel.tensor = layout.tensor_model_parallel_size.value_or(1);
  spec.parallel.pipeline = layout.pipeline_model_parallel_size.value_or(1);
  spec.parallel.virtual_pipeline = layout.virtual_pipeline_model_parallel_size.value_or(1);
  spec.parallel.context = layout.context_parallel_size.value_or(1);
  const int64_t model = spec.parallel.tensor * spec.parallel.pipeline * spec.parallel.context;
  spec.parallel.data =
      layout.data_parallel_size.value_or(std::max<int64_t>(1, ranks_of(result) / std::max<int64_t>(1, model)));
  spec.parallel.zero_stage = std::clamp<int64_t>(layout.zero_stage.value_or(0), 0, 3);
  spec.parallel.sequence_parallel = layout.sequence_parallel.value_or(false);
  spec.parallel.ends_as_layers = layout.embedding_and_loss_as_layers.value_or(false);
  spec.parallel.expert = layout.expert_model_parallel_size,
  spec.parallel.expert_tensor = layout.expert_tensor_parallel_size;
  if (result.experts) spec.routing = result.experts->routing, spec.dispatcher = result.experts->dispatcher;
  spec.micro_batch_size = *result.training_config.micro_batch_size;
  spec.global_batch_size = *result.training_config.global_batch_size;
  spec.sequence_length = *result.training_config.sequence_length;
  spec.recompute = parse_enum<Recompute>(result.training_config.recompute.value_or("none")).value_or(Recompute::none);
  return spec;
}

bool is_known(const std::optional<int64_t>& size) {
  constexpr int64_t k_max = int64_t{1} << 24;  // beyond any training; products of two stay whole
  return size && *size > 0 && *size < k_max;
}

bool is_whole(const ModelSpec& m) {
  constexpr int64_t k_max_layers = 1000;
  if (m.num_layers > k_max_layers) return false;
  for (const int64_t each : {m.num_layers, m.hidden_size, m.ffn_hidden_size, m.num_attention_heads,
                             m.num_key_value_heads, m.head_dim, m.vocab_size})
    if (!is_known(each)) return false;
  return true;
}

// Of a sparse model, whose further figures are not checked one by one.
bool has_sound_experts(const RunResult& result) {
  const ModelSpec& model = *result.model_info.shape;
  if (!model.experts && !model.latent_attention) return true;
  const int64_t ranks = result.parallelism_config.expert_model_parallel_size.value_or(1);
  const int64_t tensor = result.parallelism_config.expert_tensor_parallel_size.value_or(1);
  return check_model(model, "").empty() && is_known(ranks) && is_known(tensor) && ranks * tensor <= ranks_of(result);
}

// In floating point: what foreign files state may pass any whole number.
bool has_sound_layout(const RunResult& result) {
  const ParallelismConfig& layout = result.parallelism_config;
  const auto size = [](const std::optional<int64_t>& each) { return static_cast<double>(each.value_or(1)); };
  const double tensor = size(layout.tensor_model_parallel_size), context = size(layout.context_parallel_size);
  const double pipeline = size(layout.pipeline_model_parallel_size), data = size(layout.data_parallel_size);
  const double chunks = size(layout.virtual_pipeline_model_parallel_size);
  if (std::min({tensor, context, pipeline, data, chunks}) < 1) return false;
  const auto ranks = static_cast<double>(ranks_of(result));
  const double model = tensor * context * pipeline;
  const double whole = layout.data_parallel_size ? model * data : model * std::floor(ranks / model);
  return whole == ranks && pipeline * chunks <= static_cast<double>(result.model_info.shape->num_layers) + 2 &&
         context <= static_cast<double>(*result.training_config.sequence_length);
}

// Why the result does not say what a prediction needs; empty where it does.
std::string lacking(const RunResult& result) {
  const TrainingConfig& t = result.training_config;
  if (result.status != RunStatus::complete) return fmt::format("a run with status {}", enum_name(result.status));
  if (!result.framework || !result.platform) return "no framework";
  if (!result.model_info.shape || !is_whole(*result.model_info.shape)) return "no model shape";
  if (!has_sound_experts(result)) return "no sound experts";
  if (!is_known(t.global_batch_size)) return "no global batch size";
  if (!is_known(t.micro_batch_size)) return "no micro-batch size";
  if (!is_known(t.sequence_length)) return "no sequence length";
  if (!is_known(ranks_of(result))) return "no number of devices";
  if (!result.precision) return "no precision";
  if (!has_sound_layout(result)) return "an inconsistent layout";
  if (!comparable_step_seconds(result)) return "no step time";
  return "";
}

std::optional<Machine> gpu_of_result(const RunResult& result, const std::vector<Machine>& probed) {
  const auto part = machine_of_device(result.gpu_info.device_name, result.gpu_info.total_memory_gb);
  for (const Machine& each : probed)
    if (each.id == (part ? part->id : result.gpu_info.device_name)) return each;
  return part;
}

std::optional<Machine> machine_of_result(const RunResult& result, const Probes& probes) {
  if (!is_of_processor(result)) return gpu_of_result(result, probes.gpus);
  if (result.derived.peak)
    if (auto facts = facts_of_peak(*result.derived.peak, *result.precision, threads_of(result), ranks_of(result))) {
      facts->name = result.gpu_info.device_name;
      return processor_machine(*facts);
    }
  const auto found = probes.processors.find(result.gpu_info.device_name);
  const bool alike = found != probes.processors.end() && found->second.threads == threads_of(result);
  return alike && found->second.memory_bandwidth > 0 ? std::optional(processor_machine(found->second)) : std::nullopt;
}

std::string describe_ranks(const Workload& w) {
  const Layout& l = w.layout;
  std::string text = fmt::format("{} ranks TP{} PP{}", l.num_gpus(), l.tensor, l.pipeline);
  if (l.chunks > 1) text += fmt::format(" VP{}", l.chunks);
  text += fmt::format(" CP{} DP{} MBS{} GBS{} SL{} {}", l.context, l.data, l.micro_batch, w.global_batch,
                      w.sequence_length, enum_name(l.sharding));
  return l.recompute == Recompute::none ? text : text + fmt::format(" {} recompute", enum_name(l.recompute));
}

OwnObservation observe(const NamedResult& named, const Probes& probes) {
  const RunResult& result = named.result;
  OwnObservation own;
  own.path = named.path;
  own.missing = lacking(result);
  if (!own.missing.empty()) return own;
  SpecWorkload read = workload_of(spec_of(result), *result.framework, *result.platform);
  own.layout = describe_ranks(read.workload);
  own.missing = read.untimed;
  if (own.missing.empty() && is_of_processor(result) != read.workload.family->own_trainer)
    own.missing = is_of_processor(result) ? "this framework on a CPU" : "the native trainer on a GPU";
  const auto machine = machine_of_result(result, probes);
  if (own.missing.empty() && !machine) own.missing = "a machine unknown to the planner";
  if (own.missing.empty() && machine->peak(read.workload.precision) <= 0)
    own.missing = fmt::format("no known {} peak", enum_name(read.workload.precision));
  if (!own.missing.empty()) return own;
  if (!std::isfinite(predict_seconds(built_in_parameters(), *machine, read.workload) /
                     *comparable_step_seconds(result)))
    own.missing = "implausible figures";
  if (!own.missing.empty()) return own;
  std::optional<double> bytes = comparable_memory_gb(result);
  if (bytes && !std::isfinite(*bytes *= 1e9)) bytes.reset();
  own.observed = Observation{std::move(read.workload), *machine, *comparable_step_seconds(result), bytes};
  return own;
}

ResultResidual residual_of(const OwnObservation& own, const ParameterSet& parameters, const ParameterSet* before) {
  ResultResidual row;
  row.result = std::filesystem::path(own.path).filename().string();
  row.layout = own.layout;
  if (!own.observed) {
    row.missing = own.missing;
    return row;
  }
  const Observation& seen = *own.observed;
  row.family = seen.workload.family->id, row.machine = seen.machine.id;
  row.precision = std::string(enum_name(seen.workload.precision));
  row.measured_seconds = seen.seconds;
  row.predicted_seconds = predict_seconds(parameters, seen.machine, seen.workload);
  row.error = *row.predicted_seconds / seen.seconds - 1;
  if (before != nullptr) row.before_seconds = predict_seconds(*before, seen.machine, seen.workload);
  if (before != nullptr) row.before_error = *row.before_seconds / seen.seconds - 1;
  row.predicted_memory = estimate_memory(seen.workload, parameters).total();
  row.measured_memory = seen.memory_bytes;
  if (seen.memory_bytes) row.memory_error = *row.predicted_memory / *seen.memory_bytes - 1;
  if (before == nullptr) return row;
  row.before_memory = estimate_memory(seen.workload, *before).total();
  if (seen.memory_bytes) row.before_memory_error = *row.before_memory / *seen.memory_bytes - 1;
  return row;
}

void add_quantiles(OwnResultsReport& report, const std::string& of, std::optional<double> ResultResidual::*error) {
  std::vector<double> errors;
  for (const ResultResidual& row : report.rows)
    if (row.*error) errors.push_back(*(row.*error));
  if (!errors.empty()) report.errors.push_back(errors_of(of, std::move(errors)));
}

std::string seconds_cell(const std::optional<double>& seconds) { return seconds ? format_duration(*seconds) : ""; }
std::string memory_cell(const std::optional<double>& bytes) { return bytes ? format_memory(*bytes) : ""; }

}  // namespace

std::optional<ProcessorFacts> facts_of_peak(const PeakInfo& peak, Precision precision, int64_t threads, int64_t ranks) {
  const double bandwidth = peak.memory_bytes_per_second.value_or(0);
  if (!peak.id.starts_with("measured:") || !(bandwidth > 0) || !std::isfinite(bandwidth)) return std::nullopt;
  if (!(peak.flops_per_second > 0) || !std::isfinite(peak.flops_per_second)) return std::nullopt;
  ProcessorFacts facts;
  facts.threads = threads;
  const auto shares = static_cast<double>(ranks);
  facts.widens = precision != Precision::fp32 && peak.id == "measured:cpu:fp32";
  (precision == Precision::fp32 ? facts.peak_32 : facts.peak_16) = peak.flops_per_second * shares;
  facts.memory_bandwidth = bandwidth * shares;
  return facts;
}

std::vector<OwnObservation> observe_results(const std::vector<NamedResult>& results,
                                            const std::map<std::string, ProcessorFacts>& probed,
                                            const std::vector<Machine>& gpus) {
  std::vector<OwnObservation> all;
  for (const NamedResult& each : results) all.push_back(observe(each, {probed, gpus}));
  return all;
}

OwnResultsReport report_own_results(const std::vector<OwnObservation>& observed, const ParameterSet& parameters,
                                    const ParameterSet* before) {
  OwnResultsReport report;
  for (const OwnObservation& own : observed) {
    report.rows.push_back(residual_of(own, parameters, before));
    if (const auto& missing = report.rows.back().missing) ++report.not_predicted[*missing];
  }
  add_quantiles(report, "step time before", &ResultResidual::before_error);
  add_quantiles(report, "step time", &ResultResidual::error);
  add_quantiles(report, "memory before", &ResultResidual::before_memory_error);
  add_quantiles(report, "memory", &ResultResidual::memory_error);
  return report;
}

std::string render_own_results(const OwnResultsReport& report) {
  TextTable rows{{"result", "framework", "layout", "measured", "before", "error", "predicted", "error", "memory",
                  "before", "predicted", "error"},
                 {},
                 {3, 4, 5, 6, 7, 8, 9, 10, 11}};
  for (const ResultResidual& row : report.rows) {
    const std::string layout = row.missing ? "not predicted: " + *row.missing : row.precision + " " + row.layout;
    rows.rows.push_back({printable(row.result), row.family, printable(layout), seconds_cell(row.measured_seconds),
                         seconds_cell(row.before_seconds), signed_percent(row.before_error),
                         seconds_cell(row.predicted_seconds), signed_percent(row.error),
                         memory_cell(row.measured_memory), memory_cell(row.before_memory),
                         memory_cell(row.predicted_memory), signed_percent(row.memory_error)});
  }
  TextTable errors{{"of", "results", "median error", "90th percentile", "worst", "bias"}, {}, {1, 2, 3, 4, 5}};
  for (const PlanErrors& each : report.errors) errors.rows.push_back(error_cells(each));
  std::string text = render_text(rows) + (errors.rows.empty() ? "" : "\n" + render_text(errors));
  if (report.moved) text += "\n" + render_moved(*report.moved);
  return text;
}

}  // namespace tprimat::planner
