#include "archive/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "archive/find_sealed.h"
#include "archive/manifest.h"
#include "archive/sealed_files.h"
#include "archive/sha256.h"
#include "archive/stated_log.h"
#include "archive/stated_numbers.h"
#include "archive/stated_series.h"
#include "base/error.h"
#include "result/metrics.h"
#include "result/result_file.h"
#include "result/summary.h"
#include "stats/mean_estimate.h"
#include "text/format.h"

namespace tprimat {
namespace {

// What the first reading leaves: a hash of each file, and the JSON that may be a result.
struct Opened {
  std::map<std::string, SealedFile> files;
  std::map<std::string, std::string> documents;
  std::vector<std::string> no_json;
  std::optional<std::string> manifest;
};

bool is_json(const std::string& text) {
  try {
    parse_json(text, "");
    return true;
  } catch (const Error&) {
    return false;
  }
}

Opened open_archive(const std::filesystem::path& archive, const ArchiveLimits& limits) {
  Opened opened;
  int64_t result_bytes = 0;
  read_sealed_files(
      archive,
      [&](const std::string& name, std::string content) {
        if (name == k_manifest_name) {
          opened.manifest = std::move(content);
          return;
        }
        opened.files[name] = {name, std::ssize(content), sha256_hex(content)};
        if (!is_document(name)) return;
        if (may_be_result(content)) {
          result_bytes += std::ssize(content);
          if (result_bytes > limits.result_bytes)
            throw Error(Problem{
                fmt::format("holds more than {} of results", format_gb(static_cast<double>(limits.result_bytes))),
                archive.string(), "such archives are not written by tprimat"});
          opened.documents[name] = std::move(content);
        } else if (!is_json(content)) {
          opened.no_json.push_back(name);
        }
      },
      limits);
  if (!opened.manifest)
    throw Error(Problem{fmt::format("holds no {}", k_manifest_name), archive.string(),
                        "give a file that `tprimat archive` wrote"});
  return opened;
}

// "output/train_x.json" was made of "output/runs/train_x/steps.jsonl".
std::string steps_beside(const std::string& name) {
  const std::filesystem::path path(name);
  return (path.parent_path() / "runs" / path.stem() / "steps.jsonl").generic_string();
}

class Verifier {
 public:
  Verifier(const Opened& opened, const Manifest& manifest) {
    for (const auto& [name, file] : opened.files) names_.add(name);
    check_files(opened, manifest);
    for (const std::string& name : opened.no_json) note_no_json(name);
    for (const auto& [name, text] : opened.documents)
      if (const auto stored = parse_result(name, text)) check_result(name, *stored);
  }

  // Step records and logs that results name are read in a second pass: no more than one is held at a time.
  void check_sources(const std::filesystem::path& archive, const Opened& opened, const ArchiveLimits& limits) {
    if (waiting_.empty()) return;
    read_sealed_files(
        archive,
        [&](const std::string& name, const std::string& content) {
          const auto waiting = waiting_.find(name);
          if (waiting == waiting_.end()) return;
          const auto file = opened.files.find(name);
          if (file == opened.files.end() || file->second.sha256 != sha256_hex(content))
            throw Error(Problem{"changed while it was read", archive.string(), "verify it once more"});
          check_waiting(name, waiting->second, content);
        },
        limits);
  }

  Verification take() {
    std::set<std::pair<std::string, std::string>> seen;  // a figure may be denied by its series and by the log
    std::erase_if(found_.broken, [&](const Broken& each) { return !seen.insert({each.file, each.what}).second; });
    return std::move(found_);
  }

 private:
  void check_files(const Opened& opened, const Manifest& manifest) {
    std::map<std::string, SealedFile> missing = opened.files;
    for (const SealedFile& file : manifest.files) {
      ++found_.files;
      const auto sealed = opened.files.find(file.path);
      missing.erase(file.path);
      if (sealed == opened.files.end())
        found_.broken.push_back({file.path, "is missing", "", ""});
      else if (sealed->second.sha256 != file.sha256)
        found_.broken.push_back({file.path, "SHA-256", file.sha256, sealed->second.sha256});
      else if (sealed->second.bytes != file.bytes)
        found_.broken.push_back(
            {file.path, "bytes", fmt::format("{}", file.bytes), fmt::format("{}", sealed->second.bytes)});
    }
    for (const auto& [name, file] : missing) found_.broken.push_back({name, "was not sealed", "", ""});
  }

  // Nothing for JSON of another kind: configurations, profiles, comparisons.
  std::optional<Json> parse_result(const std::string& name, const std::string& text) {
    try {
      Json json = parse_json(text, "");
      if (json.is_object() && json.contains("gpu_info") && json.contains("training_config")) return json;
    } catch (const Error&) {
      note_no_json(name);
    }
    return std::nullopt;
  }

  void note_no_json(const std::string& name) {
    found_.notes.push_back(name + ": is no JSON: nothing in it was checked");
  }

  void check_result(const std::string& name, const Json& stored) {
    try {
      const auto result =
          std::make_shared<StatedResult>(StatedResult{name, stored, run_result_from_json(stored, name)});
      ++found_.results;
      result->skip_intervals = has_other_intervals(name, stored);
      check_figures(*result);
      find_source(result);
    } catch (const Error& error) {
      found_.broken.push_back({name, error.problems().front().what, "", ""});
    }
  }

  bool has_other_intervals(const std::string& name, const Json& stored) {
    const Json statistics = stored.value("statistics", Json::object());
    if (!statistics.is_object() || !statistics.contains("interval_method")) return false;
    const Json& method = statistics["interval_method"];
    if (method == k_interval_method) return false;
    found_.notes.push_back(
        fmt::format("{}: its intervals were made by {}, which this program does not use: they were "
                    "not checked",
                    name, print_json_line(method)));
    return true;
  }

  void check_figures(const StatedResult& result) {
    RunResult again = result.read;
    summarise_run(again, stored_options(again));
    const Json derived = run_result_to_json(again);
    for (const char* section : {"performance_metrics", "memory_metrics", "statistics", "derived", "warmup"})
      if (result.stored.contains(section))
        check_numbers({result.file, section, result.skip_intervals}, result.stored[section],
                      derived.contains(section) ? derived[section] : Json(), found_);
    check_metrics_of_others(result, again, derived);
  }

  // Figures that another tool put beside ours, "final_loss" say: what we know by that name, else nothing.
  void check_metrics_of_others(const StatedResult& result, const RunResult& again, const Json& derived) {
    for (const auto& [key, value] : result.stored.items()) {
      const Metric* metric = find_metric(key);
      const bool is_figure = metric != nullptr || key.find("loss") != std::string::npos;
      if (derived.contains(key) || !is_figure || key == "loss_values") continue;
      const auto figure = metric != nullptr ? metric->read(again) : std::nullopt;
      check_numbers({result.file, key}, value, figure ? Json(figure->value) : Json(), found_);
    }
  }

  // Results that were made of one file, which is parsed once for all of them, and once for each format of a log.
  struct Waiting {
    StatedResults of_records;
    std::map<std::string, StatedResults> of_log;  // by format
  };

  void check_waiting(const std::string& name, const Waiting& waiting, const std::string& content) {
    if (!waiting.of_records.empty()) {
      const RecordsByStep records = parse_records(content);
      for (const auto& result : waiting.of_records) check_series(result->file, result->read, records, found_);
    }
    for (const auto& [format, results] : waiting.of_log) check_log(results, name, content, found_);
  }

  // What the series of a result were made of, where that was sealed too.
  void find_source(const std::shared_ptr<const StatedResult>& result) {
    const SourceInfo& source = result->read.source;
    std::optional<std::string> steps = steps_beside(result->file);
    if (!names_.holds(*steps)) steps = source.steps_file ? names_.find(*source.steps_file, result->file) : std::nullopt;
    if (steps) {
      waiting_[*steps].of_records.push_back(result);
    } else if (!is_from_log(result->read)) {
      note_unchecked(result->file, "no step records beside it");
    } else if (const auto log = names_.find(*source.log, result->file)) {
      waiting_[*log].of_log[*source.format].push_back(result);
    } else {
      note_unchecked(result->file,
                     fmt::format("its log {} is not in the archive, or under several names", *source.log));
    }
  }

  void note_unchecked(const std::string& name, const std::string& why) {
    found_.notes.push_back(fmt::format("{}: {}: its step times and losses were taken as they are", name, why));
  }

  SealedNames names_;
  std::map<std::string, Waiting> waiting_;
  Verification found_;
};

}  // namespace

Verification verify_archive(const std::filesystem::path& archive, const ArchiveLimits& limits) {
  const Opened opened = open_archive(archive, limits);
  const Manifest manifest = read_manifest(*opened.manifest);
  Verifier verifier(opened, manifest);
  verifier.check_sources(archive, opened, limits);
  Verification found = verifier.take();
  found.manifest_sha256 = sha256_hex(*opened.manifest);
  found.created = manifest.created;
  found.program = manifest.program;
  return found;
}

}  // namespace tprimat
