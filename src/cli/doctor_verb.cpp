#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "cli/session_config.h"
#include "cli/verbs.h"
#include "command_line/output_target.h"
#include "command_line/value_checks.h"
#include "doctor/diagnosis.h"
#include "doctor/doctor_facts.h"
#include "doctor/installer.h"
#include "launch/frameworks.h"
#include "launch/trainer_program.h"
#include "process/process.h"
#include "telemetry/gpu_libraries.h"
#include "text/enum_names.h"
#include "text/json_fields.h"

namespace tprimat::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_doctor_examples =
    "  tprimat doctor                                    is this machine fit to measure? what is missing?\n"
    "  tprimat doctor --brief                            leaves out findings that are in order\n"
    "  tprimat doctor --platform nvd --framework tran    exit status 4 if that cannot run here\n"
    "  tprimat doctor --install tran,fsdp                installs frameworks from pinned package lists\n";

struct DoctorOptions {
  std::string platform = "auto", output;
  std::vector<std::string> frameworks, install;
  bool brief = false;
};

// A configuration that cannot be read does not keep the doctor from looking at the machine.
void take_configuration(const Session& session, suite::DoctorRequest& request) {
  const suite::ConfigSources sources = config_sources(session);
  try {
    const suite::LoadedExperiment loaded = suite::load_experiment(sources);
    request.output = loaded.experiment.output_directory;
    request.paths = loaded.experiment.paths;
  } catch (const Error& error) {
    if (sources.path || !sources.overrides.empty()) throw;
    Problem problem = error.problems().front();
    problem.what = "the configuration is not used: " + problem.what;
    log_warning(to_string(problem));
  }
}

suite::DoctorRequest to_doctor_request(const DoctorOptions& options, const Session& session) {
  suite::DoctorRequest request;
  if (options.platform != "auto") request.platform = parse_choice<Platform>(options.platform, "--platform");
  for (const std::string& name : options.frameworks)
    request.frameworks.push_back(parse_choice<Framework>(name, "--framework"));
  take_configuration(session, request);
  if (!options.output.empty()) request.output = options.output;
  return request;
}

// What the native trainer would load for the platform's GPUs. One that cannot say cannot train either.
void ask_trainer(suite::DoctorFacts& facts) {
  LocalRunner runner;
  try {
    facts.gpu_libraries = suite::read_trainer_libraries(runner, facts.platform()).loaded;
  } catch (const Error& error) {
    const Problem& problem = error.problems().front();
    for (suite::FrameworkCondition& framework : facts.frameworks)
      if (framework.id == Framework::native)
        framework.lacking = Problem{"native: " + problem.where + ": " + problem.what, "", problem.hint};
  }
}

ExitStatus examine(const DoctorOptions& options, const Session& session) {
  suite::DoctorFacts facts = suite::read_doctor_facts(to_doctor_request(options, session), find_gpu_libraries());
  ask_trainer(facts);
  const suite::MachineDiagnosis diagnosis = suite::diagnose(facts);
  print_result(session.json ? print_json(to_json(suite::document::describe_diagnosis(diagnosis, facts)))
                            : suite::render_diagnosis(diagnosis, options.brief));
  for (const MachineFinding& finding : diagnosis.findings)
    if (finding.severity >= MachineSeverity::missing)
      log_error(to_string(Problem{finding.what, finding.area, finding.remedy}));
  return suite::exit_status_of(diagnosis);
}

std::optional<suite::Installation> find_installed(Framework framework) {
  for (const suite::FrameworkModule& module : suite::framework_modules())
    if (module.id == framework) return module.find({});
  return std::nullopt;
}

ExitStatus install_all(const DoctorOptions& options, const Session& session) {
  std::vector<Framework> wanted;
  for (const std::string& name : options.install) wanted.push_back(parse_choice<Framework>(name, "--install"));
  LocalRunner runner;
  std::vector<suite::document::InstalledFramework> installed;
  std::string lines;
  for (const Framework framework : wanted) {
    const ScratchFolder scratch;
    suite::install_framework(framework, scratch.path(), runner, [](std::string_view line) { log_note(line); });
    const auto found = find_installed(framework);
    if (!found)
      throw Error(Problem{fmt::format("{} was installed but cannot be found", display_name(framework)), "--install",
                          "check TPRIMAT_FRAMEWORKS and XDG_DATA_HOME, which set the search path"},
                  ExitStatus::work_failed);
    installed.push_back({framework, found->version, found->place});
    lines += fmt::format("{} {} in {}\n", enum_name(framework), found->version, found->place);
  }
  print_result(session.json ? print_json(to_json(installed)) : lines);
  return ExitStatus::done;
}

}  // namespace

void add_doctor_verb(CommandLine& program, Session& session) {
  auto options = std::make_shared<DoctorOptions>();
  CommandLine* verb =
      add_verb(program, session, "doctor",
               "Check whether this machine is fit to measure; name a remedy for each finding", k_doctor_examples);
  add_json_option(*verb, session);
  add_config_options(*verb, session);
  verb->add_option("--platform", options->platform, "Required platform: auto (this machine's), nvd, amd or cpu")
      ->choices(choices_of<Platform>({"auto"}))
      ->type_name("NAME");
  verb->add_option("--framework", options->frameworks, "Frameworks that must run here; exit status 4 if one cannot")
      ->choices(choices_of<Framework>())
      ->type_name("LIST")
      ->delimiter(',');
  verb->add_option("--output", options->output, "Results folder, checked for free space (default: the configuration's)")
      ->check(folder_output("a results folder"))
      ->type_name("DIR");
  verb->add_option("--install", options->install,
                   "Install these frameworks from pinned package lists instead of checking")
      ->choices(choices_of<Framework>())
      ->type_name("LIST")
      ->delimiter(',');
  verb->add_flag("--brief", options->brief, "Leave out findings that are in order");
  verb->callback([options, &session] {
    session.action = [options, &session] {
      return options->install.empty() ? examine(*options, session) : install_all(*options, session);
    };
  });
}

}  // namespace tprimat::cli
