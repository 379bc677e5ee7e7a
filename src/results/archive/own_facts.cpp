#include <fmt/format.h>

#include "archive/stated_facts.h"
#include "result/peak.h"
#include "result/summary.h"

namespace tprimat::results {
namespace {

using Word = std::optional<std::string>;

// A fact of a result, and the value that another part of the same result implies. Without either there is no check.
struct OwnFact {
  const char* fact;
  Word (*stated)(const RunResult&);
  Word (*follows)(const RunResult&);
};

Word from_environment(const RunResult& run, const std::string& key) {
  const auto found = run.environment.find(key);
  return found == run.environment.end() || found->second.empty() ? std::nullopt : Word(found->second);
}

Word stack_of(const RunResult& run) {
  if (!run.platform) return std::nullopt;
  return *run.platform == Platform::nvd ? "cuda" : *run.platform == Platform::amd ? "rocm" : "cpu";
}

// Whether the processor of a run has no products of 16-bit numbers and multiplies them in fp32.
bool widens(const RunResult& run) {
  if (run.platform != Platform::cpu) return false;
  if (from_environment(run, "env.ONEDNN_MAX_CPU_ISA") || from_environment(run, "env.DNNL_MAX_CPU_ISA")) return true;
  const std::string sets = from_environment(run, "cpu_instruction_sets").value_or("");
  if (run.precision == Precision::bf16) return sets.find("avx512_bf16") == std::string::npos;
  return run.precision == Precision::fp16 && sets.find("avx512_fp16") == std::string::npos;
}

Word stated_peak_precision(const RunResult& run) {
  if (!run.derived.peak) return std::nullopt;
  const std::string& id = run.derived.peak->id;
  return id.substr(id.rfind(':') + 1);
}

Word true_peak_precision(const RunResult& run) {
  if (!run.precision || !run.derived.peak) return std::nullopt;
  const bool is_widened = run.derived.peak->id == "measured:cpu:fp32" && widens(run);
  return std::string(enum_name(is_widened ? Precision::fp32 : *run.precision));
}

constexpr OwnFact k_own_facts[] = {
    {"gpu_info.software_stack", [](const RunResult& run) { return run.gpu_info.software_stack; }, stack_of},
    {"gpu_info.device_name", [](const RunResult& run) { return Word(run.gpu_info.device_name); },
     [](const RunResult& run) { return run.platform == Platform::cpu ? from_environment(run, "cpu") : std::nullopt; }},
    {"gpu_info.software_version", [](const RunResult& run) { return run.gpu_info.software_version; },
     [](const RunResult& run) { return from_environment(run, run.gpu_info.software_stack.value_or("")); }},
    {"framework_version", [](const RunResult& run) { return run.framework_version; },
     [](const RunResult& run) {
       return run.framework == Framework::native ? from_environment(run, "tprimat") : std::nullopt;
     }},
    {"derived.peak.id",
     [](const RunResult& run) {
       const bool is_catalogued = run.derived.peak && run.derived.peak->id.starts_with("catalogue:");
       return is_catalogued ? Word(run.derived.peak->id) : std::nullopt;
     },
     [](const RunResult& run) {
       const auto peak = run.precision ? catalogue_peak(run.gpu_info.device_name, *run.precision) : std::nullopt;
       return peak ? Word(peak->id) : std::nullopt;
     }},
    {"derived.peak.id", stated_peak_precision, true_peak_precision}};

}  // namespace

bool is_of_suite(const RunResult& result) {
  const std::string format = result.source.format.value_or("");
  const bool is_extracted = !format.empty() && format != "log" && format != "tprimat-steps";
  return result.config_hash || result.source.steps_file || format == "log" || format == "tprimat-steps" ||
         (result.framework == Framework::native && !is_extracted);
}

void check_own_facts(const StatedResult& result, Verification& found) {
  if (!result.of_suite) return;
  for (const OwnFact& each : k_own_facts) {
    const Word stated = each.stated(result.read), follows = each.follows(result.read);
    if (!stated || !follows) continue;
    ++found.facts;
    if (*stated != *follows) found.broken.push_back({result.file, each.fact, *stated, *follows});
  }
}

}  // namespace tprimat::results
