#include "archive/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "archive/seal.h"
#include "archive/sealed_files.h"
#include "archive/sha256.h"
#include "base/error.h"
#include "result/result_file.h"
#include "result/step_record.h"
#include "result/summary.h"
#include "text/json_fields.h"

namespace tprimat {
namespace {

bool agree(double stated, double derived) {
  constexpr double k_tolerance = 1e-6;
  return stated == derived ||
         std::fabs(stated - derived) <= k_tolerance * std::max(std::fabs(stated), std::fabs(derived));
}

// What is needed after the hashes were taken: JSON (results among it), step records and the manifest.
struct Opened {
  std::map<std::string, std::string> hashes, documents, steps;
  std::optional<std::string> manifest;
};

Opened open_archive(const std::filesystem::path& archive) {
  Opened opened;
  read_sealed_files(archive, [&](const std::string& name, std::string content) {
    if (name == k_manifest_name) {
      opened.manifest = std::move(content);
      return;
    }
    opened.hashes[name] = sha256_hex(content);
    const std::filesystem::path path(name);
    if (path.extension() == ".json")
      opened.documents[name] = std::move(content);
    else if (path.filename() == "steps.jsonl")
      opened.steps[name] = std::move(content);
  });
  return opened;
}

class Verifier {
 public:
  explicit Verifier(Opened opened, const Manifest& manifest) : opened_(std::move(opened)) {
    check_files(manifest);
    for (const auto& [name, text] : opened_.documents)
      if (const auto stored = parse_result(name, text)) check_result(name, *stored);
  }
  Verification found;

 private:
  void check_files(const Manifest& manifest) {
    std::map<std::string, std::string> missing = opened_.hashes;
    for (const SealedFile& file : manifest.files) {
      ++found.files;
      const auto sealed = opened_.hashes.find(file.path);
      missing.erase(file.path);
      if (sealed == opened_.hashes.end())
        found.broken.push_back({file.path, "is missing", "", ""});
      else if (sealed->second != file.sha256)
        found.broken.push_back({file.path, "SHA-256", file.sha256, sealed->second});
    }
    for (const auto& [name, hash] : missing) found.broken.push_back({name, "was not sealed", "", ""});
  }

  // Nothing for JSON of another kind: configurations, profiles, comparisons.
  std::optional<Json> parse_result(const std::string& name, const std::string& text) {
    try {
      Json json = parse_json(text, "");
      if (json.is_object() && json.contains("gpu_info") && json.contains("training_config")) return json;
    } catch (const Error&) {
      found.notes.push_back(name + ": is no JSON: nothing in it was checked");
    }
    return std::nullopt;
  }

  void check_result(const std::string& name, const Json& stored) {
    try {
      const RunResult read = run_result_from_json(stored, name);
      ++found.results;
      RunResult again = read;
      summarise_run(again, stored_options(again));
      const Json derived = run_result_to_json(again);
      for (const char* section : {"performance_metrics", "memory_metrics", "statistics", "derived"})
        if (stored.contains(section))
          compare_numbers(name, section, stored[section], derived.contains(section) ? derived[section] : Json());
      check_steps(name, read);
    } catch (const Error& error) {
      found.broken.push_back({name, error.problems().front().what, "", ""});
    }
  }

  void compare_numbers(const std::string& file, const std::string& place, const Json& stored, const Json& derived) {
    if (stored.is_object()) {
      for (const auto& [key, value] : stored.items())
        compare_numbers(file, place + "." + key, value, derived.contains(key) ? derived[key] : Json());
    } else if (stored.is_number()) {
      ++found.numbers;
      if (!derived.is_number())
        found.broken.push_back({file, place, stored.dump(), "nothing"});
      else if (!agree(stored.get<double>(), derived.get<double>()))
        found.broken.push_back({file, place, stored.dump(), derived.dump()});
    }
  }

  // "output/train_x.json" was made of "output/runs/train_x/steps.jsonl".
  void check_steps(const std::string& name, const RunResult& result) {
    const std::filesystem::path path(name);
    const std::string place = (path.parent_path() / "runs" / path.stem() / "steps.jsonl").generic_string();
    const auto records = opened_.steps.find(place);
    if (records == opened_.steps.end()) {
      found.notes.push_back(name + ": no step records beside it: its step times were taken as they are");
      return;
    }
    std::istringstream lines(records->second);
    std::map<int64_t, StepRecord> by_step;
    for (std::string line; std::getline(lines, line);)
      if (const auto record = parse_step_record(line)) by_step[record->step] = *record;
    for (size_t i = 0; i < result.step_times.size(); ++i) check_step(name, result, i, by_step);
    if (by_step.size() > result.step_times.size())
      found.broken.push_back(
          {name, "steps", fmt::format("{}", result.step_times.size()), fmt::format("{} recorded", by_step.size())});
  }

  void check_step(const std::string& name, const RunResult& result, size_t entry,
                  const std::map<int64_t, StepRecord>& records) {
    const int64_t number = step_number(result, entry);
    const std::string what = fmt::format("step {}", number);
    const auto record = records.find(number);
    ++found.steps;
    if (record == records.end()) {
      found.broken.push_back({name, what + " has no record", "", ""});
      return;
    }
    if (!agree(result.step_times[entry], record->second.time_seconds))
      found.broken.push_back({name, what + ", time in s", fmt::format("{}", result.step_times[entry]),
                              fmt::format("{}", record->second.time_seconds)});
    if (entry >= result.loss_values.size() || !record->second.loss || std::isnan(*record->second.loss)) return;
    if (!agree(result.loss_values[entry], *record->second.loss))
      found.broken.push_back({name, what + ", loss", fmt::format("{}", result.loss_values[entry]),
                              fmt::format("{}", *record->second.loss)});
  }

  Opened opened_;
};

}  // namespace

Verification verify_archive(const std::filesystem::path& archive) {
  Opened opened = open_archive(archive);
  if (!opened.manifest)
    throw Error(Problem{fmt::format("holds no {}", k_manifest_name), archive.string(),
                        "give a file that `tprimat archive` wrote"});
  const std::string text = *opened.manifest;
  const auto manifest = from_json<Manifest>(parse_json(text, k_manifest_name), k_manifest_name);
  Verifier verifier(std::move(opened), manifest);
  Verification found = std::move(verifier.found);
  found.manifest_sha256 = sha256_hex(text);
  found.created = manifest.created;
  found.program = manifest.program;
  return found;
}

}  // namespace tprimat
