#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "cli/documents.h"
#include "cli/session_config.h"
#include "cli/verbs.h"
#include "command_line/output_target.h"
#include "compare/load_runs.h"
#include "process/interrupt.h"
#include "process/process.h"
#include "result/result_file.h"
#include "sinks/sinks.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat::cli {
namespace {

constexpr const char* k_export_examples =
    "  tprimat export --format csv                       exports ./output to ./export\n"
    "  tprimat export results/ --format tensorboard && tensorboard --logdir export/tensorboard\n"
    "  tprimat export new.json --format prometheus --output /var/lib/node_exporter/textfile\n"
    "  tprimat export results/ --format parquet,mlflow,wandb,mllog --output shared/\n";

struct ExportRequest {
  std::vector<std::string> paths, formats;
  std::string output = "./export";
};

struct OpenSink {
  const results::SinkKind* kind;
  std::unique_ptr<results::Sink> sink;
};

// Nothing is opened before every name is known, and nothing is written before every component is there.
std::vector<OpenSink> open_sinks(const ExportRequest& request, ProcessRunner& runner) {
  std::vector<OpenSink> sinks;
  for (const std::string& name : request.formats) {
    const results::SinkKind& kind = results::find_sink(name);
    const bool again =
        std::any_of(sinks.begin(), sinks.end(), [&](const OpenSink& each) { return each.kind == &kind; });
    if (!again) sinks.push_back({&kind, nullptr});
  }
  for (OpenSink& each : sinks) each.sink = each.kind->open({request.output, runner});
  return sinks;
}

results::LoadedRuns load_exported(const Session& session, const ExportRequest& request) {
  std::vector<std::string> paths = request.paths;
  if (paths.empty()) paths.push_back(results_folder(session));
  results::LoadedRuns loaded = results::load_runs(paths);
  for (const results::SkippedFile& file : loaded.skipped)
    log_detail(fmt::format("skipped {}: {}", file.path, file.reason));
  if (loaded.runs.empty())
    throw Error(Problem{"no results to export", join(paths, ", "),
                        "name result files, or the output directory of `tprimat run`"});
  return loaded;
}

// Two files of different folders may have one name.
class RunNames {
 public:
  std::string unused(const std::string& wanted) {
    std::string name = wanted;
    for (int& next = next_.try_emplace(wanted, 2).first->second; !names_.insert(name).second; ++next)
      name = fmt::format("{}-{}", wanted, next);
    return name;
  }

 private:
  std::set<std::string> names_;
  std::map<std::string, int> next_;  // number to try, by the wanted name
};

// A path may hold bytes that are no UTF-8, which no format takes.
std::string to_utf8(const std::string& path) {
  return parse_json(print_json_line(Json(path)), path).get<std::string>();
}

void export_run(const results::LoadedRun& run, bool all_series, const std::string& name, std::vector<OpenSink>& sinks) {
  const std::optional<RunResult> whole = all_series ? std::nullopt : std::optional(load_run_result(run.path));
  const results::ExportedRun exported{name, to_utf8(run.path), whole ? *whole : run.result};
  for (OpenSink& each : sinks) each.sink->add(exported);
}

void print_places(const Session& session, const std::vector<OpenSink>& sinks, size_t runs) {
  document::Exported exported{static_cast<int64_t>(runs), {}};
  std::string text;
  for (const OpenSink& each : sinks) {
    std::vector<std::string> places;
    for (const auto& place : each.sink->places()) {
      text += fmt::format("{:12} {}\n", each.kind->name, place.string());
      places.push_back(place.string());
    }
    if (!places.empty()) exported.written.add(each.kind->name) = std::move(places);
  }
  print_result(session.json ? print_json(to_json(exported)) : text);
}

ExitStatus write_export(const Session& session, const ExportRequest& request, bool prints_places) {
  LocalRunner runner;
  std::vector<OpenSink> sinks = open_sinks(request, runner);
  const results::LoadedRuns loaded = load_exported(session, request);
  const InterruptGuard interrupt;
  RunNames names;
  for (const results::LoadedRun& run : loaded.runs) {
    if (interrupt.count() > 0) return ExitStatus::interrupted;
    export_run(run, loaded.all_series, names.unused(results::make_run_name(run.path)), sinks);
  }
  for (OpenSink& each : sinks) each.sink->finish();
  if (prints_places) print_places(session, sinks, loaded.runs.size());
  return ExitStatus::done;
}

// The only file below a folder.
std::filesystem::path find_single_file(const std::filesystem::path& folder, const std::string& format) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  if (files.size() == 1) return files.front();
  throw Error(Problem{fmt::format("{} writes {} files here, and standard output holds one", format, files.size()),
                      "--output", "name a folder"});
}

// What one format makes of the results, if that is one file.
ExitStatus export_to_stdout(const Session& session, ExportRequest request) {
  require_one_on_stdout({{"--json", session.json}, {"--output -", true}});
  if (request.formats.size() > 1)
    throw Error(Problem{"standard output holds one format", "--format", "name one, or a folder with --output"});
  const ScratchFolder scratch;
  request.output = scratch.path().string();
  const ExitStatus status = write_export(session, request, false);
  if (status != ExitStatus::done) return status;
  const std::filesystem::path file = find_single_file(scratch.path(), request.formats.front());
  if (read_file(file).find('\0') != std::string::npos)
    refuse_binary_on_terminal("-", "--output", request.formats.front());
  copy_to_stdout(file);
  return status;
}

ExitStatus export_runs(const Session& session, const ExportRequest& request) {
  return names_stdout(request.output) ? export_to_stdout(session, request) : write_export(session, request, true);
}

std::vector<std::string> sink_names() {
  std::vector<std::string> names;
  for (const results::SinkKind& kind : results::sink_kinds()) names.emplace_back(kind.name);
  return names;
}

std::string list_sinks() {
  std::string text = "\nFormats:\n";
  for (const results::SinkKind& kind : results::sink_kinds())
    text += fmt::format("  {:12} {}\n", kind.name, kind.title);
  return text;
}

}  // namespace

void add_export_verb(CommandLine& program, Session& session) {
  auto request = std::make_shared<ExportRequest>();
  CommandLine* verb = add_verb(program, session, "export", "Write results in the formats of other tools",
                               k_export_examples + list_sinks());
  add_json_option(*verb, session);
  add_config_options(*verb, session);
  verb->add_option("paths", request->paths, "Result files, or directories of them (default: the results folder)")
      ->type_name("DIR|FILE");
  verb->add_option("--format", request->formats, "Formats, separated by commas")
      ->required()
      ->delimiter(',')
      ->choices(sink_names())
      ->type_name("NAME,...")
      ->allow_extra_args(false);
  verb->add_option("--output", request->output, "Directory of the export; -: stdout, for a single file")
      ->type_name("DIR")
      ->capture_default_str();
  verb->callback(
      [&session, request] { session.action = [&session, request] { return export_runs(session, *request); }; });
}

}  // namespace tprimat::cli
