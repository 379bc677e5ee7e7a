#include <fmt/format.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>

#include "base/environment.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/documents.h"
#include "cli/extract_gathered.h"
#include "cli/extract_request.h"
#include "cli/session_config.h"
#include "cli/verbs.h"
#include "command_line/output_target.h"
#include "command_line/value_checks.h"
#include "config/variables.h"
#include "extract/dialects.h"
#include "report/log_report.h"
#include "result/result_file.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_extract_examples =
    "  tprimat extract                                    the newest logs in the usual places, one result each\n"
    "  tprimat extract train.log                          any log: format, steps, speed, failures\n"
    "  tprimat extract logs/ --output results/            every log in a folder, one result file each\n"
    "  zcat job.log.gz | tprimat extract - --json         a result on stdout\n"
    "  tprimat extract train.log --follow                 while it grows\n"
    "  tprimat extract train.log --attempt all            each attempt of a restarted training\n"
    "  tprimat extract train.log --telemetry gpu.csv --device H100 --sequence-length 4096\n"
    "  tprimat extract output/train_cpu_tran_llama.json   a result of a Python callback: fills in its figures\n"
    "  tprimat extract --list-formats                     the supported formats\n"
    "\nAdd facts that a log lacks with `--device`, `--devices`, `--model`, `--sequence-length` ..., or with\n"
    "`--config FILE`. Without a path, the newest logs of LLAMA_LOG, QWEN_LOG ... (<MODEL>_LOG), of the output folder\n"
    "and of the installations' folders are read, with facts from ./config.yaml. Exit status 1: a log has no steps, or\n"
    "its run failed or ended before its last step; for a folder: no file gave a result. Exit status 2 without a path:\n"
    "no log was found.\n";

// The series of a long log come and go. Giving each back to the kernel and asking for fresh pages took 6 % of the time.
void keep_freed_memory() {
#if defined(__GLIBC__)
  constexpr int k_large = 32 << 20, k_huge = 256 << 20;  // bytes
  ::mallopt(M_MMAP_THRESHOLD, k_large);
  ::mallopt(M_TRIM_THRESHOLD, k_huge);
#endif
}

// The steps of a large log too: where they lay, the summary and the written result find memory that is in use already.
// Those of a huge log grow so often that the holes in the heap would cost more.
void keep_freed_steps(const std::vector<std::string>& paths) {
#if defined(__GLIBC__)
  constexpr uintmax_t k_huge_log = 1 << 30;
  for (const std::string& path : paths) {
    std::error_code error;
    if (const uintmax_t size = fs::file_size(path, error); !error && size > k_huge_log) return;
  }
  ::mallopt(M_MMAP_MAX, 0);
#else
  static_cast<void>(paths);
#endif
}

template <NamedEnum E>
std::optional<E> parse_known(const std::string& word, const char* option) {
  if (word.empty()) return std::nullopt;
  return parse_choice<E>(word, option);
}

logs::AttemptChoice parse_attempts(const std::string& text) {
  if (text.empty() || text == "all") return {!text.empty()};
  if (text.size() > 5 || text.find_first_not_of("0123456789") != std::string::npos)
    throw Error(Problem{fmt::format("\"{}\" is not an attempt", text), "--attempt", "give a number from 1, or all"});
  return {false, std::stoll(text)};
}

void settle_known_facts(ExtractRequest& request) {
  logs::KnownFacts& known = request.options.known;
  known.platform = parse_known<Platform>(request.platform, "--platform");
  known.precision = parse_known<Precision>(request.precision, "--precision");
  known.framework = parse_known<Framework>(request.framework, "--framework");
  if (request.devices > 0) known.devices = request.devices;
  if (request.batch > 0) known.global_batch_size = request.batch;
  if (request.length > 0) known.sequence_length = request.length;
  request.options.attempts = parse_attempts(request.attempt);
  if (request.warmup >= 0) known.fixed_warmup_steps = request.warmup;
}

// Files named by the environment, one per model of the configuration.
std::vector<fs::path> logs_of_environment(const Session& session) {
  std::vector<fs::path> paths;
  const suite::Experiment experiment = suite::load_experiment(config_sources(session)).experiment;
  for (const suite::ModelEntry& model : experiment.models) {
    const auto path = read_environment(suite::log_variable(model.spec.name));
    if (path && !path->empty()) paths.emplace_back(*path);
  }
  return paths;
}

// The peaks that `run` would take from the configuration, where there is one. A log is not worth less because of a
// configuration that lies in the folder by chance and cannot be read; without a path it is needed.
void take_stated_peaks(const Session& session, ExtractRequest& request) {
  const suite::ConfigSources sources = config_sources(session);
  const bool is_named = sources.path || !sources.overrides.empty();
  std::error_code ignored;
  if (!is_named && !fs::exists("config.yaml", ignored)) return;
  try {
    for (const auto& [platform, setup] : suite::load_experiment(sources).experiment.platforms)
      for (const auto& [precision, peak] : setup.peak_flops_override)
        request.options.known.peaks.push_back(
            {setup.device_model, precision, peak, setup.peak_origin == suite::PeakOrigin::mine});
  } catch (const Error& error) {
    if (is_named || request.paths.empty()) throw;
    Problem problem = error.problems().front();
    problem.what = "the configuration is not used: " + problem.what;
    log_warning(to_string(problem));
  }
}

// What goes to stdout at the end, and the files that are written already.
struct Output {
  bool json = false;
  std::vector<Json> documents;
  std::set<std::filesystem::path> taken;
};

void show_result(const RunResult& result, Output& output) {
  if (output.json)
    output.documents.push_back(run_result_to_json(result));
  else
    print_result(results::render_log_summary(result));
}

void store_result(RunResult& result, const fs::path& target) {
  write_run_result(target, result, Survives::kill);
  log_note(fmt::format("wrote {}", target.string()));
  tell_contradictions(result, target);
}

ExitStatus write_result(RunResult& result, const std::string& path, const ExtractRequest& request, Output& output) {
  show_result(result, output);
  if (names_stdout(request.output)) return tell_outcome(result, path);
  if (!result.step_times.empty() || result.events || result.time_to_train)
    store_result(result, free_result_path(result, path, request, output.taken));
  return tell_outcome(result, path);
}

ExitStatus write_completed(RunResult& result, const std::string& path, const ExtractRequest& request, Output& output) {
  show_result(result, output);
  if (!names_stdout(request.output)) store_result(result, completed_path(result, path, request));
  return tell_outcome(result, path);
}

// The name of the log and of its folder: what lies above is not about the run.
fs::path last_parts(const fs::path& path) { return path.parent_path().filename() / path.filename(); }

ExitStatus extract_one(const std::string& path, const ExtractRequest& request, Output& output) {
  if (auto plain = take_plain_result(path, request)) return write_completed(*plain, path, request, output);
  ExitStatus worst = ExitStatus::done;
  suite::ExtractOptions options = request.options;
  options.named.path = last_parts(path);
  for (RunResult& result : suite::extract_runs(path, options))
    if (const ExitStatus status = write_result(result, path, request, output); status != ExitStatus::done)
      worst = status;
  return worst;
}

// What is wrong with one of several logs is told; the others still give their results.
ExitStatus extract_one_of_many(const std::string& path, const ExtractRequest& request, Output& output) {
  try {
    return extract_one(path, request, output);
  } catch (const Error& error) {
    if (error.status() == ExitStatus::work_failed) throw;  // the results cannot be written
    for (const Problem& problem : error.problems()) log_error(to_string(problem));
    log_error(fmt::format("{} gave no result", path == "-" ? "standard input" : printable(path)));
    return error.status();
  }
}

document::LogFormat describe_dialect(const logs::Dialect& dialect) {
  document::LogFormat format{std::string(dialect.id), std::string(dialect.title), std::string(dialect.versions), {}};
  auto& fields = format.fields_of_log;
  for (const logs::FieldNote& note : dialect.fields) {
    const auto known = std::ranges::find(fields, note.name, &std::pair<std::string, std::string>::first);
    if (known == fields.end())
      fields.add(note.name) = note.from;
    else
      known->second += "; " + std::string(note.from);
  }
  return format;
}

ExitStatus list_formats(const Session& session) {
  if (session.json) {
    std::vector<document::LogFormat> list;
    for (const logs::Dialect& dialect : logs::dialects()) list.push_back(describe_dialect(dialect));
    print_result(print_json(to_json(list)));
    return ExitStatus::done;
  }
  std::string text;
  for (const logs::Dialect& dialect : logs::dialects()) {
    text += fmt::format("{}  {} ({})\n", dialect.id, dialect.title, dialect.versions);
    TextTable table;
    for (const logs::FieldNote& note : dialect.fields)
      table.rows.push_back({"   ", std::string(note.name), std::string(note.from)});
    text += render_text(table) + '\n';
  }
  print_result(text);
  return ExitStatus::done;
}

// Before anything is read: what is missing, and what does not go together.
void check_paths(const std::vector<std::string>& paths, const ExtractRequest& request) {
  std::vector<Problem> problems;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (path == "-") continue;
    if (!fs::exists(path, ignored))
      problems.push_back({"no such file or folder", path, ""});
    else if (paths.size() > 1 && fs::is_directory(path, ignored))
      problems.push_back({"a folder must be the only argument", path, "name one folder, or only logs"});
  }
  const bool one_document = names_stdout(request.output) || fs::path(request.output).extension() == ".json";
  if (paths.size() > 1 && one_document)
    problems.push_back({"several logs produce several results", "--output", "name a directory"});
  if (names_stdout(request.output) && (request.follow || request.options.attempts.all))
    problems.push_back({"standard output holds one result", "--output", "name a directory"});
  const bool has_folder = std::any_of(paths.begin(), paths.end(), [](const std::string& path) {
    std::error_code ignored;
    return fs::is_directory(path, ignored);
  });
  if (!request.attempt.empty() && has_folder)
    problems.push_back({"--attempt does not work on a folder", "",
                        fmt::format("name the logs, e.g. {}", (fs::path(paths.front()) / "*.log").string())});
  if (!request.attempt.empty() && request.follow)
    problems.push_back({"--attempt and --follow cannot be combined", "", "omit one of them"});
  if (problems.empty() && request.follow && (paths.size() != 1 || !fs::is_regular_file(paths.front())))
    problems.push_back({"follows a single log file", "--follow", "name one log file"});
  if (!problems.empty()) throw Error(std::move(problems));
}

ExitStatus extract(const Session& session, ExtractRequest& request) {
  if (request.list_formats) return list_formats(session);
  keep_freed_memory();
  settle_known_facts(request);
  take_stated_peaks(session, request);
  if (!request.options.format.empty()) logs::find_dialect(request.options.format);
  if (request.paths.empty() && !request.follow) return extract_gathered(request, session);
  std::vector<std::string> paths = request.paths;
  if (paths.empty())
    for (const fs::path& path : logs_of_environment(session)) paths.push_back(path.string());
  if (paths.empty()) throw Error(Problem{"no log given", "--follow", "name a log, or set LLAMA_LOG, QWEN_LOG ..."});
  std::optional<suite::LoadedExperiment> configuration;
  if (!session.config_path.empty() || !session.overrides.empty()) configuration = load_session_config(session);
  if (configuration) request.options.configuration = &*configuration;
  request.options.named.path = last_parts(paths.front());
  check_paths(paths, request);
  keep_freed_steps(paths);
  request.names_output = !request.output.empty();
  if (!request.names_output) request.output = results_folder(session);
  if (request.follow) return follow_log(paths.front(), request);
  if (paths.size() == 1 && fs::is_directory(paths.front())) return extract_folder(paths.front(), request, session);
  ExitStatus worst = ExitStatus::done;
  const bool prints_json = session.json || names_stdout(request.output);
  Output output{prints_json, {}, {}};
  for (const std::string& path : paths) {
    const ExitStatus status =
        paths.size() == 1 ? extract_one(path, request, output) : extract_one_of_many(path, request, output);
    worst = std::max(worst, status);
  }
  const bool single = paths.size() == 1 && !request.options.attempts.all;
  if (prints_json) print_result(print_json(single ? output.documents.front() : Json(output.documents)));
  return worst;
}

std::vector<std::string> format_ids() {
  std::vector<std::string> ids;
  for (const logs::Dialect& dialect : logs::dialects()) ids.emplace_back(dialect.id);
  return ids;
}

void add_fact_options(CommandLine& verb, ExtractRequest& request) {
  verb.add_option("--platform", request.platform, "Platform, if the log lacks it: nvd, amd, cpu")
      ->choices(choices_of<Platform>())
      ->type_name("NAME");
  verb.add_option("--model", request.options.known.model, "Model, e.g. \"Llama 3.1 8B\"")->type_name("NAME");
  verb.add_option("--device", request.options.known.device, "Device, e.g. \"H100\"")->type_name("NAME");
  verb.add_option("--devices", request.devices, "Number of devices")->type_name("N")->check(number_from(1, 10000000));
  verb.add_option("--global-batch-size", request.batch, "Sequences per step")
      ->type_name("N")
      ->check(number_from(1, 1000000000));
  verb.add_option("--sequence-length", request.length, "Tokens per sequence")
      ->type_name("N")
      ->check(number_from(1, 1000000000));
  verb.add_option("--framework", request.framework,
                  "Framework, if the log lacks it or shows only the trainer inside: prim around Megatron-LM")
      ->type_name("NAME");
  verb.add_option("--precision", request.precision, "Precision of the matrix products: bf16, fp16, fp8, fp32, tf32")
      ->choices(choices_of<Precision>())
      ->type_name("NAME");
  verb.add_option("--warmup", request.warmup, "Skip this many records instead of detecting the warm-up")
      ->type_name("N")
      ->check(number_from(0, 1000000000));
}

}  // namespace

void add_extract_verb(CommandLine& program, Session& session) {
  auto request = std::make_shared<ExtractRequest>();
  CommandLine* verb =
      add_verb(program, session, "extract", "Turn any framework's log into a result: steps, speed, settings, failures",
               k_extract_examples);
  add_json_option(*verb, session);
  add_config_options(*verb, session);
  verb->add_option("paths", request->paths, "Logs (plain, gzip or zstd), one folder of logs, or - for standard input")
      ->type_name("FILE|DIR");
  verb->add_option("--format", request->options.format, "Read the log as this format instead of detecting it")
      ->choices(format_ids())
      ->type_name("ID");
  verb->add_flag("--list-formats", request->list_formats, "List the formats and the figures read from each");
  verb->add_option("--output", request->output,
                   "Directory for result files, or a .json file for one log (default: the results folder); -: one "
                   "log's result on stdout")
      ->type_name("DIR|FILE");
  verb->add_flag("--follow", request->follow, "Follow a growing log and keep its result current; Ctrl-C stops");
  verb->add_option("--attempt", request->attempt,
                   "Extract only this attempt of a restarted run; all: one result per attempt (default: the last run, "
                   "with its restarts)")
      ->type_name("N|all");
  verb->add_option("--telemetry", request->options.telemetry,
                   "Telemetry recorded by nvidia-smi, rocm-smi or amd-smi, joined to the steps by time")
      ->type_name("FILE")
      ->allow_extra_args(false);
  add_fact_options(*verb, *request);
  verb->callback([&session, request] { session.action = [&session, request] { return extract(session, *request); }; });
}

}  // namespace tprimat::cli
