#include <fmt/format.h>

#include "archive/stated_facts.h"
#include "result/peak.h"
#include "result/summary.h"

namespace tprimat {
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

Word peak_precision(const RunResult& run) {
  if (!run.derived.peak) return std::nullopt;
  const std::string& id = run.derived.peak->id;
  return id.substr(id.rfind(':') + 1);
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
    {"derived.peak.id", peak_precision,
     [](const RunResult& run) { return run.precision ? Word(std::string(enum_name(*run.precision))) : std::nullopt; }}};

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

}  // namespace tprimat
