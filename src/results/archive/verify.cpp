#include "archive/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "archive/find_sealed.h"
#include "archive/sealed_files.h"
#include "archive/signature.h"
#include "archive/witnesses.h"
#include "base/error.h"
#include "result/metrics.h"
#include "result/result_file.h"
#include "result/summary.h"
#include "stats/mean_estimate.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

constexpr const char* k_steps_file = "steps.jsonl";
constexpr const char* k_profiled_file = "profiled_steps.jsonl";
constexpr const char* k_spec_file = "train_spec.json";
constexpr const char* k_launch_file = "launch.json";

// The result of the first pass: a hash of each file, and the JSON that may be a result.
struct Opened {
  std::map<std::string, SealedFile> files;
  std::map<std::string, std::string> documents;
  std::map<std::string, std::string> requests;  // files that the suite writes before a run
  std::vector<std::string> no_json, reports;
  std::optional<std::string> manifest, signature;
};

bool is_json(const std::string& text) {
  try {
    parse_json(text, "");
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool is_request(const std::string& name) {
  const std::filesystem::path file = std::filesystem::path(name).filename();
  return file == k_spec_file || file == k_launch_file;
}

// Tables, pages and plots of `tprimat compare` and the like.
bool is_report(const std::string& name, const std::string& content) {
  constexpr std::array k_endings = {".md", ".csv", ".tsv", ".html", ".xml", ".prom", ".svg", ".png"};
  const std::string ending = std::filesystem::path(name).extension().string();
  return std::ranges::find(k_endings, ending) != k_endings.end() ||
         (ending == ".json" && content.find("\"verdict\"") != std::string::npos);
}

Opened open_archive(const FileSource& archive, const std::string& where, const ArchiveLimits& limits) {
  Opened opened;
  int64_t result_bytes = 0;
  archive([&](const std::string& name, std::string content) {
    if (name == k_manifest_name || name == k_signature_name) {
      (name == k_manifest_name ? opened.manifest : opened.signature) = std::move(content);
      return;
    }
    opened.files[name] = {name, std::ssize(content), sha256_hex(content)};
    if (is_report(name, content)) opened.reports.push_back(name);
    if (may_be_result(name, content) || is_request(name)) {
      result_bytes += std::ssize(content);
      if (result_bytes > limits.result_bytes)
        throw Error(
            Problem{fmt::format("holds more than {} of results", format_gb(static_cast<double>(limits.result_bytes))),
                    where, "tprimat does not write such archives"});
      if (is_request(name)) opened.requests[name] = content;
      if (may_be_result(name, content)) opened.documents[name] = std::move(content);
    } else if (is_document(name) && !is_json(content)) {
      opened.no_json.push_back(name);
    }
  });
  if (!opened.manifest)
    throw Error(
        Problem{fmt::format("holds no {}", k_manifest_name), where, "give a file that `tprimat archive` wrote"});
  return opened;
}

// "output/train_x.json" was made of the files in "output/runs/train_x".
std::filesystem::path folder_of_run(const std::string& result) {
  const std::filesystem::path path(result);
  return path.parent_path() / "runs" / path.stem();
}

class Verifier {
 public:
  Verifier(const Opened& opened, const Manifest& manifest) : opened_(opened) {
    for (const auto& [name, file] : opened.files) names_.add(name);
    check_files(opened, manifest);
    for (const std::string& name : opened.no_json) note_no_json(name);
    if (!opened.reports.empty())
      found_.notes.push_back(
          fmt::format("reports were not checked; regenerate them from the results: {}", join(opened.reports, ", ")));
    for (const auto& [name, text] : opened.documents)
      if (const auto stored = parse_result(name, text)) check_result(name, *stored);
    find_moved_logs();
  }

  // Step records and logs that results name are read in a second pass: no more than one is held at a time.
  void check_sources(const FileSource& archive, const std::string& where) {
    if (waiting_.empty()) return;
    archive([&](const std::string& name, const std::string& content) {
      const auto waiting = waiting_.find(name);
      if (waiting == waiting_.end()) return;
      const auto file = opened_.files.find(name);
      if (file == opened_.files.end() || file->second.sha256 != sha256_hex(content))
        throw Error(Problem{"changed during verification", where, "verify it again"});
      check_waiting(name, waiting->second, content);
    });
  }

  Verification take() {
    std::set<std::pair<std::string, std::string>> seen;  // both its series and the log may contradict a figure
    std::erase_if(found_.broken, [&](const Broken& each) { return !seen.insert({each.file, each.what}).second; });
    std::stable_partition(found_.broken.begin(), found_.broken.end(),
                          [](const Broken& each) { return !is_derived_figure(each); });
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
    for (const auto& [name, file] : missing) found_.broken.push_back({name, "is not listed in the manifest", "", ""});
  }

  // Nothing for JSON of another kind: configurations, profiles, comparisons.
  std::optional<Json> parse_result(const std::string& name, const std::string& text) {
    try {
      Json json = parse_json(text, "");
      if (is_result(json)) return json;
      if (holds_results(json))
        found_.notes.push_back(name + ": holds a list of results: none was checked; put each in its own file");
    } catch (const Error&) {
      if (is_document(name)) note_no_json(name);
    }
    return std::nullopt;
  }

  void note_no_json(const std::string& name) {
    found_.notes.push_back(name + ": is not JSON: its content was not checked");
  }

  void check_result(const std::string& name, const Json& stored) {
    try {
      const auto result =
          std::make_shared<StatedResult>(StatedResult{name, stored, run_result_from_json(stored, name)});
      ++found_.results;
      result->skip_intervals = has_other_intervals(name, stored);
      const RequestFiles request = find_request(*result);
      result->of_suite = is_of_suite(result->read) || !request.spec.empty() || !request.launch.empty();
      check_figures(*result);
      check_own_facts(*result, found_);
      check_status(*result, found_);
      check_request(*result, request, found_);
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
        fmt::format("{}: its intervals come from {}, which this program does not use: they were not checked", name,
                    print_json_line(method)));
    return true;
  }

  void check_figures(const StatedResult& result) {
    const ResultCheck check{result, "", found_};
    RunResult again = result.read;
    if (result.of_suite) again.memory_metrics.peak_memory_allocated_gb = again.memory_metrics.peak_device_used_gb = {};
    summarise_run(again, stored_options(again));
    const Json derived = run_result_to_json(again);
    for (const char* section : {"performance_metrics", "memory_metrics", "statistics", "derived", "warmup", "profile"})
      if (result.stored.contains(section))
        check_numbers(check, section, result.stored[section], derived.value(section, {}));
    check_expert_means(check, derived);
    for (const auto& [section, word] :
         {std::pair{"derived", "headline_formula"}, {"warmup", "method"}, {"warmup", "reason"}, {"warmup", "steady"}})
      if ((word != std::string_view("reason") || result.of_suite) && result.stored.contains(section) &&
          result.stored[section].contains(word))
        check_words(check, fmt::format("{}.{}", section, word), result.stored[section][word],
                    derived[section].value(word, {}), Silence::denies);
    check_metrics_of_others(check, again, derived);
    if (result.of_suite) note_unstated(result, derived);
  }

  static void check_expert_means(const ResultCheck& check, const Json& derived) {
    const Json stated = check.result.stored.value("experts", {}), follows = derived.value("experts", {});
    for (const std::string mean : {"load", "dropped_share", "aux_loss", "z_loss"})
      if (stated.is_object() && stated.contains(mean))
        check_numbers(check, "experts." + mean, stated.value(mean, {}), follows.value(mean, {}));
  }

  // Sections that the suite always writes: without them there is nothing to check.
  void note_unstated(const StatedResult& result, const Json& derived) {
    std::vector<std::string> missing;
    for (const std::string key :
         {"schema_version", "framework", "timestamp", "model_info", "precision", "dataset", "gpu_info",
          "training_config", "parallelism_config", "performance_metrics", "memory_metrics", "warmup", "statistics",
          "derived", "environment", "config_hash", "config_audit", "source"}) {
      const bool has_none =
          (key == "performance_metrics" || key == "statistics") && !derived.contains(key);  // no step was recorded
      const Json* stated = result.stored.find(key);
      const bool is_empty = stated == nullptr || stated->is_null() || *stated == "";
      if (is_empty && !has_none) missing.push_back(key);
    }
    if (!missing.empty())
      found_.notes.push_back(
          fmt::format("{}: lacks {}, which a result of `tprimat run` states", result.file, join(missing, ", ")));
  }

  // Figures that another tool added to ours, such as "final_loss": compared if we know the name.
  static void check_metrics_of_others(const ResultCheck& check, const RunResult& again, const Json& derived) {
    for (const auto& [key, value] : check.result.stored.items()) {
      const Metric* metric = find_metric(key);
      const bool is_figure = metric != nullptr || key.find("loss") != std::string::npos;
      if (derived.contains(key) || !is_figure || key == "loss_values") continue;
      const auto figure = metric != nullptr ? metric->read(again) : std::nullopt;
      check_numbers(check, key, value, figure ? Json(figure->value) : Json());
    }
  }

  // Results that were made of one file, which is parsed once for all of them, and once for each format of a log.
  struct Waiting {
    StatedResults of_records, of_profile;
    std::map<std::string, StatedResults> of_log;  // by format
  };

  void check_waiting(const std::string& name, const Waiting& waiting, const std::string& content) {
    if (!waiting.of_records.empty()) {
      const RecordsByStep records = parse_records(content);
      for (const auto& result : waiting.of_records) check_records(*result, name, records);
    }
    if (!waiting.of_profile.empty()) {
      const RecordsByStep records = parse_records(content);
      for (const auto& result : waiting.of_profile) check_profile({*result, name, found_}, records);
    }
    for (const auto& [format, results] : waiting.of_log) check_log(results, {name, content}, found_);
  }

  void check_records(const StatedResult& result, const std::string& name, const RecordsByStep& records) {
    const ResultCheck check{result, name, found_};
    check_series(check, records);
    check_work(check, records);
    check_clock(check, records);
    result.evaluations->records = name;
    result.evaluations->recorded.emplace();
    for (const auto& [step, record] : records)
      if (record.validation_loss && std::isfinite(*record.validation_loss))
        (*result.evaluations->recorded)[step] = *record.validation_loss;
    check_evaluations(result, found_);
  }

  // The sources of a result's series, if these were sealed, too.
  void find_source(const std::shared_ptr<const StatedResult>& result) {
    find_profile(result);
    const SourceInfo& source = result->read.source;
    std::optional<std::string> steps = (folder_of_run(result->file) / k_steps_file).generic_string();
    if (!names_.holds(*steps)) steps = source.steps_file ? names_.find(*source.steps_file, result->file) : std::nullopt;
    if (steps) waiting_[*steps].of_records.push_back(result);
    if (!is_from_log(result->read)) return note_no_log(*result, steps.has_value());
    const auto log = names_.find(*source.log, result->file);
    if (log)
      waiting_[*log].of_log[*source.format].push_back(result);
    else
      logless_.push_back({result, steps.has_value()});
  }

  // Traces lie beside the result, the times of their steps beside its step records.
  void find_profile(const std::shared_ptr<const StatedResult>& result) {
    if (!result->read.profile) return;
    const std::filesystem::path folder = std::filesystem::path(result->file).parent_path();
    for (const std::string& file : result->read.profile->files)
      if (!names_.holds((folder / file).generic_string()))
        found_.notes.push_back(fmt::format("{}: its trace {} is not in the archive", result->file, file));
    const std::string records = (folder_of_run(result->file) / k_profiled_file).generic_string();
    if (names_.holds(records))
      waiting_[records].of_profile.push_back(result);
    else
      found_.notes.push_back(
          fmt::format("{}: the times of its profiled steps were not checked: {} is not in the archive", result->file,
                      k_profiled_file));
  }

  // A log whose folder was renamed or copied is found by its name, unless another result names it with its folder.
  void find_moved_logs() {
    std::map<std::string, StatedResults> of_log;
    for (const auto& [result, has_steps] : logless_) {
      const auto is_unclaimed = [&](const std::string& name) {
        const auto waiting = waiting_.find(name);
        return waiting == waiting_.end() || waiting->second.of_log.empty();
      };
      const auto log = names_.find_by_name(*result->read.source.log, result->file, is_unclaimed);
      if (log)
        of_log[*log].push_back(result);
      else
        note_no_log(*result, has_steps);
    }
    for (const auto& [name, results] : of_log)
      for (const auto& result : results) waiting_[name].of_log[*result->read.source.format].push_back(result);
  }

  void note_no_log(const StatedResult& result, bool has_steps) {
    const std::string log = result.read.source.log.value_or("");
    if (!has_steps && log.empty()) return note_unchecked(result.file, "no step records beside it");
    if (has_steps && log.empty() && !result.of_suite) return;
    const std::string why =
        log.empty() || !is_from_log(result.read)
            ? "it names no log and no log format"
            : fmt::format(
                  "its log {} is not in the archive, or under several names (`tprimat archive output LOG` seals it)",
                  log);
    if (!has_steps) return note_unchecked(result.file, why);
    found_.notes.push_back(fmt::format("{}: {}: it was not checked against a log", result.file, why));
  }

  // The files of the request lie beside the step records.
  RequestFiles find_request(const StatedResult& result) const {
    std::filesystem::path folder = folder_of_run(result.file);
    if (!opened_.requests.contains((folder / k_spec_file).generic_string()) && result.read.source.steps_file)
      if (const auto steps = names_.find(*result.read.source.steps_file, result.file))
        folder = std::filesystem::path(*steps).parent_path();
    const std::string spec = (folder / k_spec_file).generic_string(),
                      launch = (folder / k_launch_file).generic_string();
    const auto text = [&](const std::string& name) {
      const auto found = opened_.requests.find(name);
      return found == opened_.requests.end() ? "" : found->second;
    };
    return {spec, text(spec), launch, text(launch)};
  }

  void note_unchecked(const std::string& name, const std::string& why) {
    found_.notes.push_back(fmt::format("{}: {}: its step times and losses were not checked", name, why));
  }

  const Opened& opened_;
  SealedNames names_;
  std::map<std::string, Waiting> waiting_;
  struct Logless {
    std::shared_ptr<const StatedResult> result;
    bool has_steps = false;  // records of them
  };
  std::vector<Logless> logless_;
  Verification found_;
};

}  // namespace

Verification verify_files(const FileSource& archive, const std::string& where, const ArchiveLimits& limits) {
  const Opened opened = open_archive(archive, where, limits);
  const Manifest manifest = read_manifest(*opened.manifest);
  Verifier verifier(opened, manifest);
  verifier.check_sources(archive, where);
  Verification found = verifier.take();
  found.manifest = *opened.manifest;
  found.signature = opened.signature;
  if (opened.signature && !is_one_signature(*opened.signature))
    found.broken.push_back({k_signature_name, "is not exactly one SSH signature", "", ""});
  found.manifest_sha256 = sha256_hex(*opened.manifest);
  found.created = manifest.created;
  found.program = manifest.program;
  return found;
}

Verification verify_archive(const std::filesystem::path& archive, const ArchiveLimits& limits) {
  const FileSource files = [&](const FileVisitor& visit) { read_sealed_files(archive, visit, limits); };
  return verify_files(files, archive.string(), limits);
}

}  // namespace tprimat::results
