#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "base/files.h"
#include "base/log.h"
#include "cli/resolved_config.h"
#include "cli/session_config.h"
#include "cli/verbs.h"
#include "command_line/output_target.h"
#include "config/values.h"
#include "telemetry/gpu_libraries.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat::cli {
namespace {

std::string count_warnings(const suite::LoadedExperiment& loaded) {
  const size_t count = loaded.warnings.size();
  return count == 0 ? "" : fmt::format("{} warning{}", count, count == 1 ? "" : "s");
}

Json json_of_scalar(const YamlNode& node) {
  if (node.quoted) return node.scalar;
  if (node.scalar == "true" || node.scalar == "false") return node.scalar == "true";
  const char* end = node.scalar.data() + node.scalar.size();
  int64_t whole = 0;
  if (std::from_chars(node.scalar.data(), end, whole).ptr == end) return whole;
  double number = 0;
  if (std::from_chars(node.scalar.data(), end, number).ptr == end) return number;
  return node.scalar;
}

Json json_of(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null: return nullptr;
    case YamlNode::Kind::scalar: return json_of_scalar(node);
    case YamlNode::Kind::list: {
      Json list = Json::array();
      for (const YamlNode& item : node.items) list.push_back(json_of(item));
      return list;
    }
    case YamlNode::Kind::map: break;
  }
  Json object = Json::object();
  for (const YamlEntry& entry : node.entries) object[entry.key] = json_of(entry.value);
  return object;
}

void list_origins(const YamlNode& node, const std::string& path, OrderedMap<std::string>& origins) {
  if (!node.is_map()) origins.emplace_back(path, node.origin.text());
  for (const YamlEntry& entry : node.entries)
    list_origins(entry.value, path.empty() ? entry.key : path + "." + entry.key, origins);
}

// The sentences of the default for this machine's GPUs; none where another configuration is in force.
std::vector<std::string> explain_default(const std::optional<GpuSession>& gpus, const suite::Experiment& experiment,
                                         const MachineFacts& machine) {
  if (!gpus) return {};
  suite::SuiteRequest request;
  request.own_program = "tprimat";
  request.presence = suite::Presence::any;
  try {
    const auto planner = planner::load_planner_settings(experiment.planner_parameters);
    return describe_choice(*gpus, suite::plan_suite(experiment, request, machine), planner.parameters);
  } catch (const Error&) {  // a valid configuration that no framework of it can run
    return gpus->chosen.reasons;
  }
}

// Whoever reads the whole configuration learns of its warnings, in one line.
ExitStatus show(const Session& session) {
  suite::ConfigSources sources = config_sources(session);
  const MachineFacts machine = suite::has_config_file(sources) ? MachineFacts{} : read_machine(open_gpu_libraries());
  const auto gpus = use_gpu_default(sources, machine, std::nullopt);
  const suite::LoadedExperiment loaded = suite::load_experiment(sources);
  if (const std::string warnings = count_warnings(loaded); !warnings.empty())
    log_note(fmt::format("{}: {}; tprimat config validate prints them", loaded.origin.text(), warnings));
  const std::vector<std::string> choice = explain_default(gpus, loaded.experiment, machine);
  if (!session.json) {
    for (const std::string& sentence : choice) print_result(fmt::format("# {}\n", sentence));
    print_result(print_yaml(loaded.settings, true));
    return ExitStatus::done;
  }
  document::ShownConfig shown{
      loaded.origin.text(), json_of(loaded.settings), resolve_config(loaded.experiment), {}, {}};
  list_origins(loaded.settings, "", shown.origins);
  if (!choice.empty()) shown.default_choice = choice;
  print_result(print_json(to_json(shown)));
  return ExitStatus::done;
}

std::vector<document::ConfigProblem> list_problems(const std::vector<Problem>& problems) {
  std::vector<document::ConfigProblem> list;
  for (const Problem& problem : problems) list.push_back({problem.where, problem.what, problem.hint});
  return list;
}

ExitStatus validate_as_json(const Session& session) {
  try {
    const suite::LoadedExperiment loaded = load_session_config(session);
    print_result(
        print_json(to_json(document::ValidatedConfig{true, loaded.origin.text(), {}, list_problems(loaded.warnings)})));
    return ExitStatus::done;
  } catch (const Error& error) {
    print_result(print_json(to_json(document::ValidatedConfig{false, {}, list_problems(error.problems()), {}})));
    return error.status();
  }
}

ExitStatus validate(const Session& session) {
  if (session.json) return validate_as_json(session);
  const suite::LoadedExperiment loaded = load_session_config(session);
  for (const Problem& warning : loaded.warnings) log_warning(to_string(warning));
  const std::string warnings = count_warnings(loaded);
  print_result(fmt::format("{}: valid{}{}\n", loaded.origin.text(), warnings.empty() ? "" : ", ", warnings));
  return ExitStatus::done;
}

ExitStatus get(const Session& session, const std::string& key) {
  const std::string path = suite::canonical_key_path(key);
  const suite::LoadedExperiment loaded = load_session_config(session);
  const YamlNode* node = suite::find_path(loaded.settings, path);
  if (node == nullptr) throw Error(Problem{fmt::format("{} has no value in {}", path, loaded.origin.text()), "", ""});
  if (session.json)
    print_result(print_json(json_of(*node)));
  else if (node->is_scalar() && printable(node->scalar) == node->scalar)
    print_result(node->scalar + "\n");
  else
    print_result(print_yaml(*node, false));
  return ExitStatus::done;
}

ExitStatus export_shell(const Session& session) {
  const suite::LoadedExperiment loaded = load_session_config(session);
  for (const suite::ExportedVariable& variable : suite::list_exports(loaded.settings)) {
    const std::string quoted = quote_shell(variable.value);
    const bool bare = quoted == variable.value;  // a value that needs no quotes gets them all the same
    print_result(bare ? fmt::format("export {}='{}'\n", variable.name, quoted)
                      : fmt::format("export {}={}\n", variable.name, quoted));
  }
  return ExitStatus::done;
}

ExitStatus init(const Session& session, bool force) {
  const std::string path = session.config_path.empty() ? "config.yaml" : session.config_path;
  std::error_code error;
  if (!force && !names_stdout(path) && std::filesystem::exists(std::filesystem::symlink_status(path, error)))
    throw Error(Problem{"already exists", path, "overwrite it with --force, or write elsewhere with --config FILE"});
  const auto gpus = choose_gpu_session(read_machine(open_gpu_libraries()), config_sources(session));
  write_output(path, gpus ? gpus->chosen.yaml : std::string(suite::default_config_text()));
  if (!names_stdout(path)) log_note(fmt::format("wrote {}; check it with tprimat config validate", path));
  return ExitStatus::done;
}

// The verbs of `config` accept the options of `config` behind them.
CommandLine* add_part(CommandLine& verb, const std::string& name, const std::string& summary) {
  CommandLine* part = verb.add_subcommand(name, summary)->fallthrough();
  part->footer("The options of `tprimat config` also apply here: --config, --set, --json, -q, -v, --no-color.\n\n" +
               verb.footer());
  return part;
}

}  // namespace

void add_config_verb(CommandLine& program, Session& session) {
  CommandLine* verb =
      add_verb(program, session, "config", "Show, check and export the configuration",
               "  tprimat config show                                  every setting and its origin\n"
               "  tprimat config validate --config my.yaml             all errors at once; exit status 2\n"
               "  tprimat config get training.data.seq_length\n"
               "  eval \"$(tprimat config export --shell)\"\n"
               "  tprimat config init                                  writes config.yaml as a starting point\n");
  add_config_options(*verb, session);
  add_json_option(*verb, session);
  verb->require_subcommand(1);

  add_part(*verb, "show", "Print the resolved configuration with the origin of each value")->callback([&session] {
    session.action = [&session] { return show(session); };
  });
  add_part(*verb, "validate", "Print all errors and warnings")->callback([&session] {
    session.action = [&session] { return validate(session); };
  });

  CommandLine* get_part = add_part(*verb, "get", "Print one setting or one section");
  auto key = std::make_shared<std::string>();
  get_part->add_option("KEY", *key, "Key, such as training.data.seq_length")->required();
  get_part->callback([&session, key] { session.action = [&session, key] { return get(session, *key); }; });

  CommandLine* export_part = add_part(*verb, "export", "Print the configuration as shell variables");
  auto shell = std::make_shared<bool>(false);
  export_part->add_flag("--shell", *shell, "Print export lines for eval (the only form)");
  export_part->callback([&session, shell] { session.action = [&session] { return export_shell(session); }; });

  CommandLine* init_part =
      add_part(*verb, "init", "Write this machine's built-in default to config.yaml, or to --config FILE; -: stdout");
  auto force = std::make_shared<bool>(false);
  init_part->add_flag("--force", *force, "Overwrite the file");
  init_part->callback([&session, force] { session.action = [&session, force] { return init(session, *force); }; });
}

}  // namespace tprimat::cli
