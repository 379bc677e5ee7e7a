#include <memory>

#include "base/error.h"
#include "command_line/value_checks.h"
#include "gpu_module/load_gpu_module.h"
#include "ops/matmul.h"
#include "program/verbs.h"
#include "spec/names.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat::engine {
namespace {

constexpr const char* k_libraries_examples =
    "  tprimat-train libraries                      built-in libraries\n"
    "  tprimat-train libraries --device nvd --json  also those loaded for NVIDIA GPUs\n";

// What a training on the platform's GPUs loads; nothing where the trainer has no module for them.
std::vector<LibraryReport> list_loaded(Platform platform) {
  if (platform == Platform::cpu) return {};
  try {
    const GpuModule* module = find_gpu_module(platform == Platform::nvd ? GpuVendor::nvd : GpuVendor::amd);
    return module == nullptr ? std::vector<LibraryReport>() : module->libraries();
  } catch (const Error& error) {  // the module is there and cannot be used
    const Problem& problem = error.problems().front();
    return {{"the trainer's module", "trainings on GPUs", false, "", "", problem.what, problem.hint}};
  }
}

std::string render_libraries(const TrainerLibraries& libraries) {
  TextTable table{{"library", "version", "serves", "place"}, {}, {}};
  for (const auto& [name, version] : libraries.built_in) table.rows.push_back({name, version, "built in", ""});
  for (const LibraryReport& each : libraries.loaded)
    table.rows.push_back({each.title, each.version, each.serves, each.refusal.empty() ? each.file : each.refusal});
  return render_text(table);
}

ExitStatus print_libraries(const Session& session, const std::string& device) {
  const TrainerLibraries libraries{library_versions(), list_loaded(parse_choice<Platform>(device, "--device"))};
  print_result(session.json ? print_json(to_json(libraries)) : render_libraries(libraries));
  return ExitStatus::done;
}

}  // namespace

void add_libraries_verb(CommandLine& program, Session& session) {
  CommandLine* verb =
      add_verb(program, session, "libraries", "Versions of the trainer's compute libraries", k_libraries_examples);
  add_json_option(*verb, session);
  auto device = std::make_shared<std::string>("cpu");
  verb->add_option("--device", *device, "Include libraries loaded for these GPUs: nvd, amd (default: cpu)")
      ->choices(choices_of<Platform>())
      ->type_name("NAME");
  verb->callback(
      [&session, device] { session.action = [&session, device] { return print_libraries(session, *device); }; });
}

}  // namespace tprimat::engine
