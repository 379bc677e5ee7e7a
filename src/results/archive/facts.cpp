#include "archive/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "archive/archive_format.h"
#include "result/run_result.h"
#include "result/step_record.h"
#include "spec/config_hash.h"
#include "text/json_fields.h"

namespace tprimat::results {
namespace {

// Facts by their witnesses: "model_info., dataset" means all names with these prefixes. The longest prefix counts.
struct Held {
  std::string_view witnesses, beginnings;
  std::vector<std::string_view> list() const {
    std::vector<std::string_view> all;
    for (size_t begin = 0, end = 0; begin <= beginnings.size(); begin = end + 2) {
      end = std::min(beginnings.find(", ", begin), beginnings.size());
      all.push_back(beginnings.substr(begin, end - begin));
    }
    return all;
  }
};

constexpr std::string_view k_spec = "train_spec.json", k_own = "the result itself",
                           k_log = "its log, where the log states them";

constexpr Held k_run[] = {
    {"the result itself, the end of its log", "status, status_reason, failure_kind"},
    {"launch.json, the result itself", "platform, derived.usd_per_hour"},
    {"launch.json", "framework, framework_installation"},
    {k_own,
     "framework_version, model_info.trainable_parameters, gpu_info.device_name, gpu_info.software_stack, "
     "gpu_info.software_version, performance_metrics., memory_metrics.avg_memory_allocated_gb, "
     "memory_metrics.peak_memory_allocated_gb, memory_metrics.peak_device_used_gb, warmup., statistics., "
     "derived., experts.load, experts.dropped_share, experts.aux_loss, experts.z_loss, environment.tprimat, "
     "environment.cuda, profile.step_time_seconds, profile.cost, telemetry[].peak_memory_used_gb, "
     "telemetry[].energy_joules, telemetry[].energy_valid"},
    {"steps.jsonl (not after the first step)", "timestamp"},
    {k_spec,
     "model_info., dataset, gpu_info.device_count, training_config., parallelism_config., "
     "experts.routing, experts.dispatcher, environment.cpu_threads_used"},
    {"train_spec.json, log of our trainer", "precision"},
    {"",
     "training_config.tokens_per_step, statistics.interval_method, derived.peak.source, "
     "derived.peak.memory_bytes_per_second, derived.peak.memory_source"},
    {"train_spec.json with launch.json", "config_hash"},
    {k_log, "effective_config."},
    {"steps.jsonl",
     "reported.unix_time, reported.loss_scale, skipped_updates, memory_values, experts.load_values, "
     "experts.dropped_values, experts.aux_loss_values, experts.z_loss_values"},
    {"profiled_steps.jsonl", "profile.first_step, profile.last_step, profile.step_times"},
    {"steps.jsonl with its time stamps, log of our trainer", "step_times"},
    {"steps.jsonl, log of our trainer", "loss_values, learning_rates, grad_norms"}};

// For results that check_log() extracts again.
constexpr Held k_extracted[] = {
    {k_log,
     "framework, platform, precision, dataset, timestamp, status, status_reason, skipped_updates, "
     "failure_kind, experts., model_info., gpu_info., training_config., parallelism_config., performance_metrics., "
     "memory_metrics., memory_by_rank, warmup., statistics., derived., config_audit, effective_config., "
     "source., steps., reported., event_counts, step_times, loss_values, learning_rates, grad_norms, "
     "memory_values"},
    {"", "framework_installation, model_info.name, source.log, source.steps_file, source.confidence, source.assumed"}};

constexpr Held k_asked[] = {{"config_hash of the result", ""}, {"", "checkpoint.directory"}};

constexpr Held k_launch[] = {{"config_hash of the result", ""},
                             {"warmup of the result", "fixed_warmup_steps"},
                             {"derived of the result", "usd_per_hour"}};

constexpr Held k_record[] = {{"the result", ""}, {"", "memory_reserved_gb"}, {"log of our trainer", "validation_loss"}};

constexpr Held k_sealed[] = {{"the supported version", "archive_version"}, {"the files of the archive", "files[]."}};

// Named as in docs/formats.md.
constexpr Held k_own_figures[] = {
    {"the result",
     "step, max_steps (first line), samples_seen, time_seconds, tokens_per_second, learning_rate, "
     "global_batch_size, loss, loss_scale, grad_norm, model, parameters, precision, threads, "
     "max_steps (other lines), allocated"},
    {"steps.jsonl", "validation_loss"},
    {"the validation loss of its line", "validation_perplexity"},
    {"", "memory by kind"}};

constexpr Held k_figures[] = {
    {"the result", "step, time_seconds, loss, learning_rate, grad_norm, loss_scale, tflops_per_gpu, settings"},
    {"", "samples_seen, tokens_seen, global_batch_size (of one step)"}};

void list_leaves(const Json& schema, const std::string& name, std::vector<std::string>& leaves) {
  const std::string dot = name.empty() ? "" : ".";
  if (schema.contains("properties"))
    for (const auto& [key, value] : schema["properties"].items()) list_leaves(value, name + dot + key, leaves);
  else if (schema.contains("additionalProperties"))
    list_leaves(schema["additionalProperties"], name + ".*", leaves);
  else if (schema.contains("items"))
    list_leaves(schema["items"], name + "[]", leaves);
  else
    leaves.push_back(name);
}

std::string_view find_witnesses(const std::string& name, std::span<const Held> held) {
  std::string_view witnesses;
  size_t longest = 0;
  for (const Held& each : held)
    for (const std::string_view beginning : each.list())
      if (name.starts_with(beginning) && beginning.size() >= longest)
        witnesses = each.witnesses, longest = beginning.size();
  return witnesses;
}

template <class Document>
void add(std::vector<Fact>& facts, const char* document, std::span<const Held> held,
         std::vector<std::string> more = {}) {
  std::vector<std::string> leaves;
  list_leaves(json_schema<Document>(), "", leaves);
  leaves.insert(leaves.end(), more.begin(), more.end());
  for (const std::string& name : leaves) facts.push_back({document, name, std::string(find_witnesses(name, held))});
}

void add_figures(std::vector<Fact>& facts, const char* document, std::span<const Held> held) {
  for (const Held& each : held)
    for (const std::string_view name : each.list())
      facts.push_back({document, std::string(name), std::string(each.witnesses)});
}

// Moves a full line to the text first.
void append_word(std::string& text, std::string& line, const std::string& word) {
  constexpr size_t k_width = 118;
  if (line.size() + 1 + word.size() > k_width) {
    text += line + "\n";
    line = "   ";
  }
  line += " " + word;
}

}  // namespace

std::vector<Fact> list_facts() {
  std::vector<Fact> facts;
  add<RunResult>(facts, "result of a run", k_run,
                 {"environment.tprimat", "environment.cuda", "environment.cpu_threads_used"});
  add<TrainSpec>(facts, "train_spec.json", k_asked);
  add<LaunchFacts>(facts, "launch.json", k_launch);
  add<StepRecord>(facts, "steps.jsonl", k_record);
  add_figures(facts, "log of our trainer", k_own_figures);
  add<RunResult>(facts, "result from a log", k_extracted);
  add_figures(facts, "log of another framework", k_figures);
  add<Manifest>(facts, k_manifest_name, k_sealed);
  return facts;
}

std::string render_facts(const std::vector<Fact>& facts) {
  std::string text, document;
  for (size_t begin = 0; begin < facts.size();) {
    size_t end = begin;
    while (end < facts.size() && facts[end].document == facts[begin].document) ++end;
    std::vector<std::string> kinds;
    for (size_t i = begin; i < end; ++i)
      if (std::ranges::find(kinds, facts[i].witnesses) == kinds.end()) kinds.push_back(facts[i].witnesses);
    std::ranges::stable_sort(kinds, [](const std::string& a, const std::string& b) { return !a.empty() && b.empty(); });
    text += facts[begin].document + "\n";
    for (const std::string& kind : kinds) {
      std::string line = kind.empty() ? "  one witness only:" : fmt::format("  checked against {}:", kind);
      for (size_t i = begin; i < end; ++i)
        if (facts[i].witnesses == kind) append_word(text, line, facts[i].name);
      text += line + "\n";
    }
    begin = end;
  }
  return text;
}

}  // namespace tprimat::results
