#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/verbs.h"
#include "config/load.h"
#include "extract/dialects.h"
#include "extract/to_result.h"
#include "process/interrupt.h"
#include "report/log_report.h"
#include "result/result_file.h"
#include "result/summary.h"
#include "run/telemetry_report.h"
#include "telemetry/telemetry_file.h"
#include "text/format.h"
#include "text/json.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_examples =
    "  tprimat extract train.log                          any log: format, steps, speed, failures\n"
    "  tprimat extract logs/ --output results/            every log of a folder, one result file each\n"
    "  zcat job.log.gz | tprimat extract - --json         a result on stdout\n"
    "  tprimat extract train.log --follow                 while it grows\n"
    "  tprimat extract train.log --telemetry gpu.csv --device H100 --sequence-length 4096\n"
    "  tprimat extract --list-formats                     what can be read\n"
    "\nOf a log alone `--device`, `--devices`, `--model`, `--sequence-length` ... may add what it does not say. "
    "Without a\n"
    "path, the files named by LLAMA_LOG, QWEN_LOG ... (<MODEL>_LOG) are read. Exit status 1: a log gave no step, or "
    "tells\n"
    "of a run that failed or did not reach its last step.\n";

struct ExtractRequest {
  std::vector<std::string> paths, telemetry;
  std::string output = "./output", format, platform, precision;
  KnownFacts known;
  int64_t devices = 0, batch = 0, length = 0, warmup = -1;
  bool list_formats = false, follow = false;
};

template <NamedEnum E>
std::optional<E> parse_choice(const std::string& word, const char* option) {
  if (word.empty()) return std::nullopt;
  const auto value = parse_enum<E>(word);
  if (!value) throw Error(Problem{fmt::format("\"{}\" is none of {}", word, enum_choices<E>()), option, ""});
  return value;
}

void settle_known_facts(ExtractRequest& request) {
  KnownFacts& known = request.known;
  known.platform = parse_choice<Platform>(request.platform, "--platform");
  known.precision = parse_choice<Precision>(request.precision, "--precision");
  if (request.devices > 0) known.devices = request.devices;
  if (request.batch > 0) known.global_batch_size = request.batch;
  if (request.length > 0) known.sequence_length = request.length;
  if (request.warmup >= 0) known.fixed_warmup_steps = request.warmup;
}

// Files named by the environment, one per model of the configuration.
std::vector<fs::path> logs_of_environment(const Session& session) {
  std::vector<fs::path> paths;
  ConfigSources sources{.path = {}, .overrides = session.overrides, .environment = current_environment()};
  if (!session.config_path.empty()) sources.path = session.config_path;
  for (const ModelEntry& model : load_experiment(sources).experiment.models) {
    std::string variable = model.spec.name + "_LOG";
    std::transform(variable.begin(), variable.end(), variable.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    if (const char* path = std::getenv(variable.c_str()); path != nullptr && *path != '\0') paths.emplace_back(path);
  }
  return paths;
}

// Steps and telemetry meet in time: what the sensors said while the steady steps ran.
void join_telemetry(RunResult& result, const std::vector<std::string>& files) {
  for (const std::string& path : files) {
    const TelemetryFile file = load_telemetry_file(path);
    for (const std::string& note : file.notes) add_warning(result, fmt::format("{}: {}", path, note));
    const auto window = steady_window(result);
    if (!file.timed || !window) {
      add_warning(result, fmt::format("{} cannot be joined to the steps: {} no time stamps", path,
                                      file.timed ? "the log has" : "it has"));
      continue;
    }
    for (TelemetrySummary& each : report_telemetry(file.traces, *window, result.platform.value_or(Platform::nvd)))
      result.telemetry.push_back(std::move(each));
  }
  if (!files.empty()) summarise_run(result, stored_options(result));
}

RunResult extract_log(const std::string& path, const ExtractRequest& request) {
  RunResult result = make_result(read_log(path, {request.format}), path, request.known);
  join_telemetry(result, request.telemetry);
  return result;
}

std::string result_name(const RunResult& result, const std::string& log) {
  if (!result.model_info.name.empty() && result.platform) return result_file_name(result, {});
  return (log == "-" ? std::string("stdin") : fs::path(log).filename().string()) + ".json";
}

fs::path result_path(const RunResult& result, const std::string& log, const ExtractRequest& request) {
  const fs::path output = request.output;
  return output.extension() == ".json" ? output : output / result_name(result, log);
}

void print_log(const RunResult& result, const Session& session) {
  if (session.json)
    print_result(print_json(run_result_to_json(result)));
  else
    print_result(render_log_summary(result));
}

ExitStatus tell_outcome(const RunResult& result, const std::string& path) {
  for (const std::string& warning : result.warnings) log_warning(printable(warning));
  if (result.status == RunStatus::complete) return ExitStatus::done;
  log_error(fmt::format("{}: {}{}", printable(path), enum_name(result.status),
                        result.status_reason ? ", " + printable(*result.status_reason) : ""));
  return ExitStatus::work_failed;
}

ExitStatus extract_one(const std::string& path, const ExtractRequest& request, const Session& session) {
  const RunResult result = extract_log(path, request);
  print_log(result, session);
  if (!result.step_times.empty() || result.events) {
    const fs::path target = result_path(result, path, request);
    write_run_result(target, result);
    log_note(fmt::format("wrote {}", target.string()));
  }
  return tell_outcome(result, path);
}

void list_files(const fs::path& folder, const fs::path& output, std::vector<fs::path>& files) {
  std::error_code error;
  for (auto each = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
       !error && each != fs::recursive_directory_iterator(); each.increment(error)) {
    const bool hidden = each->path().filename().string().starts_with('.');
    std::error_code ignored;
    if (hidden || (each->is_directory(ignored) && fs::equivalent(each->path(), output, ignored))) {
      if (each->is_directory(ignored)) each.disable_recursion_pending();
      continue;
    }
    if (each->is_regular_file(ignored)) files.push_back(each->path());
  }
  if (error) log_warning(fmt::format("{}: not everything could be listed: {}", folder.string(), error.message()));
  std::sort(files.begin(), files.end());
}

ExtractedFile extract_file(const fs::path& path, const fs::path& folder, const ExtractRequest& request) {
  ExtractedFile file{fs::relative(path, folder).string(), "", "", {}};
  try {
    file.result = extract_log(path.string(), request);
    const bool nothing = file.result.step_times.empty() && !file.result.events;
    if (nothing) {
      file.why_nothing = file.result.status_reason.value_or("no step was found");
    } else {
      const fs::path target = fs::path(request.output) / (file.path + ".json");
      write_run_result(target, file.result);
      file.result_path = target.string();
    }
  } catch (const Error& error) {
    if (error.status() == ExitStatus::work_failed) throw;  // the results cannot be written
    file.why_nothing = error.problems().front().what;
  }
  RunResult& result = file.result;
  const double last_loss = result.loss_values.empty() ? 0 : result.loss_values.back();
  result.step_times.clear(), result.learning_rates.clear(), result.grad_norms.clear(), result.memory_values.clear();
  if (!result.loss_values.empty()) result.loss_values = {last_loss};
  result.reported.reset(), result.steps.reset(), result.events.reset(), result.effective_config.reset();
  return file;
}

void show_progress(size_t done, size_t all, SteadyClock::time_point start) {
  if (::isatty(STDERR_FILENO) == 0 || log_settings().level == LogLevel::quiet) return;
  const double seconds = seconds_since(start);
  const double left = done > 0 ? seconds / static_cast<double>(done) * static_cast<double>(all - done) : 0;
  fmt::print(stderr, "\r\033[K{} of {} files, {} left", done, all, format_duration(left));
  if (done == all) fmt::print(stderr, "\r\033[K");
}

Json file_to_json(const ExtractedFile& file) {
  Json entry = {{"file", file.path}};
  if (!file.why_nothing.empty()) {
    entry["nothing"] = file.why_nothing;
    return entry;
  }
  entry["result"] = file.result_path;
  entry["format"] = file.result.source.format.value_or("");
  entry["status"] = std::string(enum_name(file.result.status));
  if (file.result.status_reason) entry["status_reason"] = *file.result.status_reason;
  if (file.result.performance_metrics) entry["steps"] = file.result.performance_metrics->total_steps;
  if (file.result.statistics) entry["median_step_time_seconds"] = file.result.statistics->median;
  return entry;
}

ExitStatus extract_folder(const fs::path& folder, const ExtractRequest& request, const Session& session) {
  if (fs::path(request.output).extension() == ".json")
    throw Error(Problem{"a folder of logs gives many results", "--output", "name a directory"});
  std::vector<fs::path> paths;
  list_files(folder, request.output, paths);
  if (paths.empty()) throw Error(Problem{"holds no files", folder.string(), ""});
  InterruptGuard interrupt;
  std::vector<ExtractedFile> files;
  const auto start = SteadyClock::now();
  for (const fs::path& path : paths) {
    if (interrupt.count() > 0) return ExitStatus::interrupted;
    files.push_back(extract_file(path, folder, request));
    if (files.size() % 16 == 0 || files.size() == paths.size()) show_progress(files.size(), paths.size(), start);
  }
  if (session.json) {
    Json list = Json::array();
    for (const ExtractedFile& file : files) list.push_back(file_to_json(file));
    print_result(print_json(list));
  } else {
    print_result(render_extracted_files(files));
  }
  const auto given = std::count_if(files.begin(), files.end(), [](const auto& f) { return f.why_nothing.empty(); });
  log_note(fmt::format("{} of {} files gave a result, written below {}", given, files.size(), request.output));
  return given > 0 ? ExitStatus::done : ExitStatus::work_failed;
}

int64_t file_size(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? static_cast<int64_t>(facts.st_size) : -1;
}

// Reads the log anew whenever it grew: at a gigabyte per second that is cheaper than being wrong about a restart. No
// more than a tenth of the time is spent reading.
ExitStatus follow_log(const std::string& path, const ExtractRequest& request) {
  InterruptGuard interrupt;
  int64_t seen = -1;
  double pause = 0.5;
  while (interrupt.count() == 0) {
    if (const int64_t size = file_size(path); size != seen) {
      const auto start = SteadyClock::now();
      const RunResult result = extract_log(path, request);
      if (!result.step_times.empty() || result.events) write_run_result(result_path(result, path, request), result);
      seen = size;
      pause = std::clamp(10 * seconds_since(start), 0.5, 60.0);
      const size_t entries = result.step_times.size();
      if (entries > 0) {
        const double seconds = result.step_times.back();
        log_note(
            fmt::format("step {}{}{}{}", step_number(result, entries - 1),
                        result.training_config.max_steps ? fmt::format("/{}", *result.training_config.max_steps) : "",
                        seconds > 0 ? ", " + format_duration(seconds) : "",
                        result.loss_values.empty() ? "" : fmt::format(", loss {:.4f}", result.loss_values.back())));
      }
    }
    for (double waited = 0; waited < pause && interrupt.count() == 0; waited += 0.1)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return ExitStatus::interrupted;
}

Json dialect_to_json(const Dialect& dialect) {
  Json fields = Json::object();
  for (const FieldNote& note : dialect.fields) {
    std::string key(note.name);
    fields[key] =
        fields.contains(key) ? fields[key].get<std::string>() + "; " + std::string(note.from) : std::string(note.from);
  }
  return {{"id", dialect.id}, {"title", dialect.title}, {"versions", dialect.versions}, {"fields", fields}};
}

ExitStatus list_formats(const Session& session) {
  if (session.json) {
    Json list = Json::array();
    for (const Dialect& dialect : dialects()) list.push_back(dialect_to_json(dialect));
    print_result(print_json(list));
    return ExitStatus::done;
  }
  std::string text;
  for (const Dialect& dialect : dialects()) {
    text += fmt::format("{}  {} ({})\n", dialect.id, dialect.title, dialect.versions);
    TextTable table;
    for (const FieldNote& note : dialect.fields)
      table.rows.push_back({"   ", std::string(note.name), std::string(note.from)});
    text += render_text(table) + '\n';
  }
  print_result(text);
  return ExitStatus::done;
}

ExitStatus extract(const Session& session, ExtractRequest& request) {
  if (request.list_formats) return list_formats(session);
  settle_known_facts(request);
  if (!request.format.empty()) find_dialect(request.format);
  std::vector<std::string> paths = request.paths;
  if (paths.empty())
    for (const fs::path& path : logs_of_environment(session)) paths.push_back(path.string());
  if (paths.empty())
    throw Error(Problem{"no log is named", "PATH", "name a log or a folder, or set LLAMA_LOG, QWEN_LOG ..."});
  if (request.follow && (paths.size() != 1 || paths.front() == "-" || !fs::is_regular_file(paths.front())))
    throw Error(Problem{"one growing file can be followed", "--follow", "name one log file"});
  if (request.follow) return follow_log(paths.front(), request);
  ExitStatus worst = ExitStatus::done;
  for (const std::string& path : paths) {
    const ExitStatus status =
        fs::is_directory(path) ? extract_folder(path, request, session) : extract_one(path, request, session);
    if (status == ExitStatus::interrupted) return status;
    if (status != ExitStatus::done) worst = status;
  }
  return worst;
}

void add_fact_options(CLI::App& verb, ExtractRequest& request) {
  verb.add_option("--platform", request.platform, "Platform, where the log does not say: nvd, amd, cpu")
      ->type_name("NAME");
  verb.add_option("--model", request.known.model, "Model, e.g. \"Llama 3.1 8B\"")->type_name("NAME");
  verb.add_option("--device", request.known.device, "Device, e.g. \"H100\"")->type_name("NAME");
  verb.add_option("--devices", request.devices, "Devices of the run")->type_name("N")->check(CLI::Range(1, 10000000));
  verb.add_option("--global-batch-size", request.batch, "Sequences per step")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000000));
  verb.add_option("--sequence-length", request.length, "Tokens per sequence")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000000));
  verb.add_option("--precision", request.precision, "Precision of the matrix products: bf16, fp16, fp8, fp32, tf32")
      ->type_name("NAME");
  verb.add_option("--warmup", request.warmup, "Leave out this many records instead of detecting the warm-up")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000000));
}

}  // namespace

void add_extract_verb(CLI::App& program, Session& session) {
  auto request = std::make_shared<ExtractRequest>();
  CLI::App* verb = add_verb(program, session, "extract",
                            "Turn any framework's log into a result: steps, speed, settings, failures", k_examples);
  add_json_option(*verb, session);
  add_config_options(*verb, session);
  verb->add_option("paths", request->paths, "Logs (plain, gzip or zstd), folders of logs, or - for standard input")
      ->type_name("FILE|DIR");
  verb->add_option("--format", request->format, "Read as this format instead of detecting it")->type_name("ID");
  verb->add_flag("--list-formats", request->list_formats, "Show every format and what is read from it");
  verb->add_option("--output", request->output,
                   "Directory for result files, or a .json file for one log (default: ./output)")
      ->type_name("DIR|FILE");
  verb->add_flag("--follow", request->follow, "Keep reading a growing log and keep its result current; Ctrl-C ends it");
  verb->add_option("--telemetry", request->telemetry,
                   "Telemetry of nvidia-smi, rocm-smi or amd-smi, joined to the steps by time")
      ->type_name("FILE")
      ->allow_extra_args(false);
  add_fact_options(*verb, *request);
  verb->callback([&session, request] { session.action = [&session, request] { return extract(session, *request); }; });
}

}  // namespace tprimat
