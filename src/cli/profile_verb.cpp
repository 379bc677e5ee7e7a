#include <memory>

#include "base/error.h"
#include "cli/run_options.h"
#include "cli/verbs.h"
#include "command_line/value_checks.h"
#include "text/json_fields.h"
#include "trace/profile_summary.h"

namespace tprimat::cli {
namespace {

constexpr const char* k_profile_examples =
    "  tprimat profile --model llama                      trains and records steady steps; not a measurement\n"
    "  tprimat profile --framework fsdp --profiler torch --steps 40 --window 21:23\n"
    "  tprimat profile --dry-run                          shows a short plan and the command of each run\n"
    "  tprimat profile --summarise trace.json.gz          where the time of a trace goes\n"
    "  tprimat profile --summarise perf_report.xlsx --json\n";

struct ProfileOptions {
  std::string file, profiler = "auto", window;
  RunOptions run;
};

ExitStatus print_summary(const Session& session, const std::string& file) {
  const logs::ProfileSummary summary = logs::summarise_profile(std::filesystem::path(file));
  print_result(session.json ? print_json(to_json(summary)) : logs::render_profile(summary));
  return ExitStatus::done;
}

suite::ProfileRequest profile_request_of(const ProfileOptions& options) {
  suite::ProfileRequest request;
  if (!options.window.empty()) request.steps = suite::parse_step_range(options.window, "--window");
  if (options.profiler == "auto") return request;
  request.profiler = parse_enum<Profiler>(options.profiler);
  if (!request.profiler)
    throw Error(Problem{"'" + options.profiler.substr(0, 64) + "' is not one of auto, " + enum_choices<Profiler>(),
                        "--profiler", suggest_word(options.profiler, names_of<Profiler>())});
  return request;
}

ExitStatus profile(const Session& session, ProfileOptions options) {
  if (!options.file.empty()) return print_summary(session, options.file);
  options.run.profile = profile_request_of(options);
  return run_configuration(session, options.run);
}

}  // namespace

void add_profile_verb(CommandLine& program, Session& session) {
  CommandLine* verb =
      add_verb(program, session, "profile",
               "Run under a profiler and show where the time goes, or summarise an existing trace", k_profile_examples);
  auto options = std::make_shared<ProfileOptions>();
  verb->add_option("--summarise", options->file,
                   "Summarise this file or folder instead: trace of PyTorch (.json), Nsight Systems (.sqlite) or "
                   "rocprofv3 (.json, .pftrace, .csv), kernel table (.csv), TraceLens report (.xlsx or folder)")
      ->type_name("FILE");
  verb->add_option("--profiler", options->profiler, "Profiler: auto (the platform's), nsys, rocprofv3, torch or own")
      ->choices(choices_of<Profiler>({"auto"}))
      ->type_name("NAME")
      ->capture_default_str();
  verb->add_option("--window", options->window, "First and last step to record (default: steady steps)")
      ->type_name("A:B");
  add_run_options(*verb, session, options->run);
  verb->callback([&session, options] { session.action = [&session, options] { return profile(session, *options); }; });
}

}  // namespace tprimat::cli
