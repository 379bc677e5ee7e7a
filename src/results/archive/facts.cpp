#include "archive/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "archive/manifest.h"
#include "result/run_result.h"
#include "result/step_record.h"
#include "spec/config_hash.h"
#include "text/json_fields.h"

namespace tprimat::results {
namespace {

// Witnesses of the facts whose names start with `beginning`; the longest match counts.
struct Held {
  std::string_view beginning, witnesses;
};

constexpr std::string_view k_spec = "train_spec.json", k_own = "the result itself",
                           k_log = "its log, where the log states them";

constexpr Held k_run[] = {{"status", "the result itself, the end of its log"},
                          {"status_reason", "the result itself, the end of its log"},
                          {"failure_kind", "the result itself, the end of its log"},
                          {"platform", "launch.json, the result itself"},
                          {"framework", "launch.json"},
                          {"framework_version", k_own},
                          {"timestamp", "steps.jsonl (not after the first step)"},
                          {"model_info.", k_spec},
                          {"model_info.trainable_parameters", k_own},
                          {"precision", "train_spec.json, log of our trainer"},
                          {"dataset", k_spec},
                          {"gpu_info.device_name", k_own},
                          {"gpu_info.device_count", k_spec},
                          {"gpu_info.software_stack", k_own},
                          {"gpu_info.software_version", k_own},
                          {"training_config.", k_spec},
                          {"training_config.tokens_per_step", ""},
                          {"parallelism_config.", k_spec},
                          {"performance_metrics.", k_own},
                          {"memory_metrics.avg_memory_allocated_gb", k_own},
                          {"memory_metrics.peak_memory_allocated_gb", k_own},
                          {"memory_metrics.peak_device_used_gb", k_own},
                          {"warmup.", k_own},
                          {"statistics.", k_own},
                          {"statistics.interval_method", ""},
                          {"derived.", k_own},
                          {"derived.peak.source", ""},
                          {"derived.peak.memory_bytes_per_second", ""},
                          {"derived.peak.memory_source", ""},
                          {"derived.usd_per_hour", "launch.json, the result itself"},
                          {"environment.tprimat", k_own},
                          {"environment.cuda", k_own},
                          {"environment.cpu_threads_used", k_spec},
                          {"telemetry[].peak_memory_used_gb", k_own},
                          {"telemetry[].energy_joules", k_own},
                          {"telemetry[].energy_valid", k_own},
                          {"config_hash", "train_spec.json with launch.json"},
                          {"effective_config.", k_log},
                          {"reported.unix_time", "steps.jsonl"},
                          {"reported.loss_scale", "steps.jsonl"},
                          {"skipped_updates", "steps.jsonl"},
                          {"step_times", "steps.jsonl with its time stamps, log of our trainer"},
                          {"loss_values", "steps.jsonl, log of our trainer"},
                          {"learning_rates", "steps.jsonl, log of our trainer"},
                          {"grad_norms", "steps.jsonl, log of our trainer"},
                          {"memory_values", "steps.jsonl"}};

// For results that check_log() extracts again.
constexpr Held k_extracted[] = {{"framework", k_log},
                                {"platform", k_log},
                                {"precision", k_log},
                                {"dataset", k_log},
                                {"timestamp", k_log},
                                {"status", k_log},
                                {"status_reason", k_log},
                                {"skipped_updates", k_log},
                                {"failure_kind", k_log},
                                {"model_info.", k_log},
                                {"model_info.name", ""},
                                {"gpu_info.", k_log},
                                {"training_config.", k_log},
                                {"parallelism_config.", k_log},
                                {"performance_metrics.", k_log},
                                {"memory_metrics.", k_log},
                                {"memory_by_rank", k_log},
                                {"warmup.", k_log},
                                {"statistics.", k_log},
                                {"derived.", k_log},
                                {"config_audit", k_log},
                                {"effective_config.", k_log},
                                {"source.", k_log},
                                {"source.log", ""},
                                {"source.steps_file", ""},
                                {"source.confidence", ""},
                                {"steps.", k_log},
                                {"reported.", k_log},
                                {"event_counts", k_log},
                                {"step_times", k_log},
                                {"loss_values", k_log},
                                {"learning_rates", k_log},
                                {"grad_norms", k_log},
                                {"memory_values", k_log}};

constexpr Held k_asked[] = {{"", "config_hash of the result"}, {"checkpoint.directory", ""}};

constexpr Held k_launch[] = {{"", "config_hash of the result"},
                             {"fixed_warmup_steps", "warmup of the result"},
                             {"usd_per_hour", "derived of the result"}};

constexpr Held k_record[] = {{"", "the result"}, {"memory_reserved_gb", ""}, {"validation_loss", "log of our trainer"}};

constexpr Held k_sealed[] = {{"archive_version", "the supported version"}, {"files[].", "the files of the archive"}};

// Named as in docs/formats.md.
constexpr Held k_own_figures[] = {{"step", "the result"},
                                  {"max_steps (first line)", "the result"},
                                  {"samples_seen", "the result"},
                                  {"time_seconds", "the result"},
                                  {"tokens_per_second", "the result"},
                                  {"learning_rate", "the result"},
                                  {"global_batch_size", "the result"},
                                  {"loss", "the result"},
                                  {"loss_scale", "the result"},
                                  {"grad_norm", "the result"},
                                  {"model", "the result"},
                                  {"parameters", "the result"},
                                  {"precision", "the result"},
                                  {"threads", "the result"},
                                  {"max_steps (other lines)", "the result"},
                                  {"allocated", "the result"},
                                  {"validation_loss", "steps.jsonl"},
                                  {"validation_perplexity", "the validation loss of its line"},
                                  {"memory by kind", ""}};

constexpr Held k_figures[] = {{"step", "the result"},
                              {"time_seconds", "the result"},
                              {"loss", "the result"},
                              {"learning_rate", "the result"},
                              {"grad_norm", "the result"},
                              {"loss_scale", "the result"},
                              {"tflops_per_gpu", "the result"},
                              {"settings", "the result"},
                              {"samples_seen", ""},
                              {"tokens_seen", ""},
                              {"global_batch_size (of one step)", ""}};

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
  const Held* best = nullptr;
  for (const Held& each : held)
    if (name.starts_with(each.beginning) && (best == nullptr || each.beginning.size() > best->beginning.size()))
      best = &each;
  return best == nullptr ? "" : best->witnesses;
}

void add(std::vector<Fact>& facts, const char* document, std::span<const Held> held,
         const std::vector<std::string>& names) {
  for (const std::string& name : names) facts.push_back({document, name, std::string(find_witnesses(name, held))});
}

template <class Document>
void add(std::vector<Fact>& facts, const char* document, std::span<const Held> held) {
  std::vector<std::string> leaves;
  list_leaves(json_schema<Document>(), "", leaves);
  add(facts, document, held, leaves);
}

void add(std::vector<Fact>& facts, const char* document, std::span<const Held> figures) {
  for (const Held& each : figures)
    facts.push_back({document, std::string(each.beginning), std::string(each.witnesses)});
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
  add<RunResult>(facts, "result of a run", k_run);
  add(facts, "result of a run", k_run, {"environment.tprimat", "environment.cuda", "environment.cpu_threads_used"});
  add<TrainSpec>(facts, "train_spec.json", k_asked);
  add<LaunchFacts>(facts, "launch.json", k_launch);
  add<StepRecord>(facts, "steps.jsonl", k_record);
  add(facts, "log of our trainer", k_own_figures);
  add<RunResult>(facts, "result from a log", k_extracted);
  add(facts, "log of another framework", k_figures);
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
      if (std::find(kinds.begin(), kinds.end(), facts[i].witnesses) == kinds.end()) kinds.push_back(facts[i].witnesses);
    std::stable_sort(kinds.begin(), kinds.end(),
                     [](const std::string& a, const std::string& b) { return !a.empty() && b.empty(); });
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
