#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "cli/parse_choice.h"
#include "cli/verbs.h"
#include "config/load.h"
#include "doctor/diagnosis.h"
#include "doctor/doctor_facts.h"
#include "doctor/installer.h"
#include "launch/frameworks.h"
#include "ops/gpu_module.h"
#include "process/local_runner.h"
#include "telemetry/gpu_libraries.h"
#include "text/enum_names.h"
#include "text/format.h"
#include "text/json.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_doctor_examples =
    "  tprimat doctor                                    is this machine fit to measure? what is missing?\n"
    "  tprimat doctor --brief                            only what is not in order\n"
    "  tprimat doctor --platform nvd --framework tran    exit status 4 where that cannot run here\n"
    "  tprimat doctor --install tran,fsdp                installs frameworks from pinned lists of packages\n";

struct DoctorOptions {
  std::string platform = "auto", output;
  std::vector<std::string> frameworks, install;
  bool brief = false;
};

// A configuration that cannot be read does not keep the doctor from looking at the machine.
void take_configuration(const Session& session, DoctorRequest& request) {
  ConfigSources sources;
  if (!session.config_path.empty()) sources.path = session.config_path;
  sources.overrides = session.overrides;
  sources.environment = current_environment();
  try {
    const LoadedExperiment loaded = load_experiment(sources);
    request.output = loaded.experiment.output_directory;
    request.paths = loaded.experiment.paths;
  } catch (const Error& error) {
    if (sources.path || !sources.overrides.empty()) throw;
    log_warning(fmt::format("the configuration cannot be used ({}); see tprimat config validate",
                            to_string(error.problems().front())));
  }
}

DoctorRequest to_doctor_request(const DoctorOptions& options, const Session& session) {
  DoctorRequest request;
  if (options.platform != "auto") request.platform = parse_choice<Platform>(options.platform, "--platform");
  for (const std::string& name : options.frameworks)
    request.frameworks.push_back(parse_choice<Framework>(name, "--framework"));
  take_configuration(session, request);
  if (!options.output.empty()) request.output = options.output;
  return request;
}

// What the native trainer would load for the platform's GPUs; nothing where it has no module for them.
std::vector<LibraryCondition> read_trainer_libraries(Platform platform) {
  std::vector<LibraryCondition> libraries;
  if (platform == Platform::cpu) return libraries;
  const GpuModule* module = nullptr;
  try {
    module = find_gpu_module(platform == Platform::nvd ? GpuVendor::nvd : GpuVendor::amd);
  } catch (const Error& error) {  // it is there and cannot be used
    const Problem& problem = error.problems().front();
    return {{platform, "the trainer's module", "trainings on GPUs", false, "", "", problem.what, problem.hint}};
  }
  if (module == nullptr) return libraries;
  for (gpu::LibraryReport& each : module->libraries())
    libraries.push_back({platform, std::move(each.title), std::move(each.serves), each.optional, std::move(each.file),
                         std::move(each.version), std::move(each.refusal), std::move(each.remedy)});
  return libraries;
}

ExitStatus examine(const DoctorOptions& options, const Session& session) {
  DoctorFacts facts = read_doctor_facts(to_doctor_request(options, session), find_gpu_libraries());
  facts.gpu_libraries = read_trainer_libraries(facts.platform());
  const MachineDiagnosis diagnosis = diagnose(facts);
  print_result(session.json ? print_json(diagnosis_to_json(diagnosis, facts))
                            : render_diagnosis(diagnosis, options.brief));
  for (const MachineFinding& finding : diagnosis.findings)
    if (finding.severity >= MachineSeverity::missing)
      log_error(to_string(Problem{finding.what, finding.area, finding.remedy}));
  return exit_status_of(diagnosis);
}

// A folder that is gone when this is.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (fs::temp_directory_path() / "tprimat-install-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr)
      throw Error(
          Problem{"no folder can be made", fs::temp_directory_path().string(), "set TMPDIR to one that can be written"},
          ExitStatus::work_failed);
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::optional<Installation> find_installed(Framework framework) {
  for (const FrameworkModule& module : framework_modules())
    if (module.id == framework) return module.find({});
  return std::nullopt;
}

ExitStatus install_all(const DoctorOptions& options, const Session& session) {
  std::vector<Framework> wanted;
  for (const std::string& name : options.install) wanted.push_back(parse_choice<Framework>(name, "--install"));
  LocalRunner runner;
  Json installed = Json::array();
  std::string lines;
  for (const Framework framework : wanted) {
    const ScratchFolder scratch;
    install_framework(framework, scratch.path(), runner, [](std::string_view line) { log_note(line); });
    const auto found = find_installed(framework);
    if (!found)
      throw Error(Problem{fmt::format("{} was installed, but is not found", display_name(framework)), "--install",
                          "TPRIMAT_FRAMEWORKS and XDG_DATA_HOME say where it is looked for"},
                  ExitStatus::work_failed);
    installed.push_back({{"id", enum_name(framework)}, {"version", found->version}, {"place", found->place}});
    lines += fmt::format("{} {} in {}\n", enum_name(framework), found->version, found->place);
  }
  print_result(session.json ? print_json(installed) : lines);
  return ExitStatus::done;
}

}  // namespace

void add_doctor_verb(CLI::App& program, Session& session) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* verb = add_verb(program, session, "doctor",
                            "Is this machine fit to measure? What is missing, and what brings it", k_doctor_examples);
  add_json_option(*verb, session);
  add_config_options(*verb, session);
  verb->add_option("--platform", options->platform, "auto, nvd, amd or cpu: what it is to be fit for")
      ->type_name("NAME");
  verb->add_option("--framework", options->frameworks, "Frameworks that must run here; exit status 4 where one cannot")
      ->type_name("LIST")
      ->delimiter(',');
  verb->add_option("--output", options->output, "Folder of results, for its room (default: that of the configuration)")
      ->type_name("DIR");
  verb->add_option("--install", options->install, "Install these frameworks instead, from pinned lists of packages")
      ->type_name("LIST")
      ->delimiter(',');
  verb->add_flag("--brief", options->brief, "Leave out what is in order");
  verb->callback([options, &session] {
    session.action = [options, &session] {
      return options->install.empty() ? examine(*options, session) : install_all(*options, session);
    };
  });
}

}  // namespace tprimat
