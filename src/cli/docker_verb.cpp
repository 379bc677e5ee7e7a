#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/output.h"
#include "cli/verbs.h"
#include "command_line/value_checks.h"
#include "launch/argument_list.h"
#include "launch/container.h"
#include "launch/installed.h"
#include "process/process.h"
#include "text/format.h"

namespace tprimat::cli {
namespace {

namespace fs = std::filesystem;
using suite::Arguments;

constexpr const char* k_docker_examples =
    "  tprimat docker build nvd                          builds tprimat:nvd from ./docker/nvd.Dockerfile\n"
    "  tprimat docker run nvd -- tprimat run --steps 20  in the foreground, in this folder\n"
    "  tprimat docker run amd --detach -- tprimat run    in the background; docker logs -f tprimat_amd follows it,\n"
    "                                                    docker rm tprimat_amd removes it\n"
    "  tprimat docker run amd --tmux -- tprimat run      in a tmux session; tmux attach -t tprimat_amd shows it\n"
    "  tprimat docker shell nvd                          a shell with the GPUs\n";

struct DockerOptions {
  std::string platform, program, tag, source = ".", name, shm_size;
  Arguments volumes, variables, command;
  bool detach = false, tmux = false, dry_run = false;
};

ContainerProgram choose_program(const DockerOptions& options) {
  if (!options.program.empty()) return parse_enum<ContainerProgram>(options.program).value();
  if (const auto program = suite::find_container_program()) return *program;
  if (options.dry_run) return ContainerProgram::docker;
  throw Error(Problem{"neither docker nor podman is in PATH", "PATH", "sudo apt-get install podman, or install Docker"},
              ExitStatus::missing_component);
}

void require_program(const std::string& program, const std::string& package) {
  if (suite::find_in_path(program)) return;
  throw Error(Problem{program + " is not in PATH", "PATH", "sudo apt-get install " + package},
              ExitStatus::missing_component);
}

Platform docker_platform(const DockerOptions& options) { return parse_enum<Platform>(options.platform).value(); }

std::string docker_image(const DockerOptions& options) {
  return options.tag.empty() ? suite::default_image(docker_platform(options)) : options.tag;
}

std::string container_name(const DockerOptions& options) {
  return options.name.empty() ? fmt::format("tprimat_{}", enum_name(docker_platform(options))) : options.name;
}

// This process becomes the command, which then has the terminal and every signal.
ExitStatus become(const Arguments& arguments, bool dry_run) {
  if (dry_run) {
    print_result(quote_command(arguments) + "\n");
    return ExitStatus::done;
  }
  const bool docker = parse_enum<ContainerProgram>(arguments.front()).has_value();
  require_program(arguments.front(),
                  docker ? (arguments.front() == "docker" ? "docker.io" : "podman") : arguments.front());
  Arguments copy = arguments;
  std::vector<char*> pointers;
  for (std::string& word : copy) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  flush_stdout();
  restore_pipe_signal();
  ::execvp(pointers[0], pointers.data());
  throw Error(Problem{fmt::format("cannot start {}: {}", arguments.front(), std::strerror(errno)), "", ""},
              ExitStatus::work_failed);
}

ExitStatus build_image(const DockerOptions& options) {
  const std::string program(enum_name(choose_program(options)));
  const fs::path file =
      fs::path(options.source) / "docker" / fmt::format("{}.Dockerfile", enum_name(docker_platform(options)));
  std::error_code unreadable;
  if (!fs::exists(file, unreadable))
    throw Error(Problem{fmt::format("no such file: {}", file.lexically_normal().string()), "--source",
                        "run this in TensorPrimat's source folder, or name it with --source"});
  return become(
      {program, "build", "--tag", docker_image(options), "--file", file.lexically_normal().string(), options.source},
      options.dry_run);
}

suite::ContainerRun container_of(const DockerOptions& options) {
  suite::ContainerRun run;
  run.program = choose_program(options);
  run.platform = docker_platform(options);
  run.name = container_name(options);
  run.image = docker_image(options);
  run.shm_size = options.shm_size;
  run.working_directory = fs::current_path().string();
  run.volumes = {suite::mount_of_folder(run.working_directory, ":", "working directory",
                                        "start it in a folder with another name")};
  run.volumes.insert(run.volumes.end(), options.volumes.begin(), options.volumes.end());
  run.variables = options.variables;
  run.command = options.command;
  return run;
}

// tmux returns at once, so nobody would see that a container could not start.
void require_daemon(const std::string& program) {
  LocalRunner runner;
  const auto answer = run_captured(runner, {program, "info"});
  if (answer && answer->exit.success()) return;
  const std::string said = answer ? answer->output.substr(0, answer->output.find('\n')) : "";
  throw Error(Problem{fmt::format("{} cannot start containers{}{}", program, said.empty() ? "" : ": ", printable(said)),
                      "--tmux", fmt::format("{} info shows why", program)},
              ExitStatus::missing_component);
}

ExitStatus run_in_container(const DockerOptions& options) {
  suite::ContainerRun run = container_of(options);
  const bool terminal =
      options.tmux || (!options.detach && ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0);
  if (options.detach) run.options = {"--detach"}, run.is_kept = true;  // else its log would go with it
  if (terminal) run.options = {"--interactive", "--tty"};
  const Arguments arguments = suite::container_arguments(run);
  if (!options.tmux) return become(arguments, options.dry_run);
  if (!options.dry_run) require_daemon(arguments.front());
  return become({"tmux", "new-session", "-d", "-s", run.name, quote_command(arguments)}, options.dry_run);
}

ExitStatus open_shell(const DockerOptions& options) {
  suite::ContainerRun run = container_of(options);
  run.options = {"--interactive", "--tty"};
  if (run.command.empty()) run.command = {"bash"};
  return become(suite::container_arguments(run), options.dry_run);
}

void add_common(CommandLine& part, DockerOptions& options) {
  part.add_option("platform", options.platform, "nvd, amd or cpu")
      ->required()
      ->transform(name_of<Platform>())
      ->choices(choices_of<Platform>())
      ->type_name("PLATFORM");
  part.add_option("--program", options.program, "docker or podman (default: docker if installed, else podman)")
      ->choose_from({"docker", "podman"})
      ->type_name("NAME");
  part.add_option("--tag", options.tag, "Image (default: tprimat:PLATFORM)")->type_name("NAME");
  part.add_flag("--dry-run", options.dry_run, "Print the command, ready to paste; start nothing");
}

void add_container_options(CommandLine& part, DockerOptions& options) {
  part.add_option("--name", options.name, "Name of the container (default: tprimat_PLATFORM)")->type_name("NAME");
  part.add_option("--volume", options.volumes,
                  "Additional folder to mount, FROM:TO; may be repeated; this folder is always mounted")
      ->type_name("PATHS")
      ->allow_extra_args(false);
  part.add_option("--env", options.variables, "Environment variable to pass to the container, by name; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  part.add_option("--shm-size", options.shm_size, "Shared memory, such as 64g (default: the host's)")
      ->type_name("SIZE");
}

struct DockerPart {
  const char *name, *summary;
  ExitStatus (*action)(const DockerOptions&);
};

CommandLine* add_docker_part(CommandLine& verb, Session& session, const DockerPart& part,
                             const std::shared_ptr<DockerOptions>& options) {
  CommandLine* line = verb.add_subcommand(part.name, part.summary);
  add_common(*line, *options);
  line->callback(
      [&session, options, action = part.action] { session.action = [options, action] { return action(*options); }; });
  return line;
}

}  // namespace

void add_docker_verb(CommandLine& program, Session& session) {
  CommandLine* verb =
      add_verb(program, session, "docker", "Build and run images with tprimat and the frameworks", k_docker_examples);
  verb->require_subcommand(1);
  const auto options = std::make_shared<DockerOptions>();
  CommandLine* build = add_docker_part(*verb, session, {"build", "Build a platform's image", build_image}, options);
  build->add_option("--source", options->source, "TensorPrimat's source folder (default: this one)")->type_name("DIR");
  CommandLine* run = add_docker_part(
      *verb, session, {"run", "Run a command in a container, in this folder", run_in_container}, options);
  add_container_options(*run, *options);
  Option* detach = run->add_flag("--detach", options->detach, "Run in the background");
  run->add_flag("--tmux", options->tmux, "Run in a new tmux session named after the container")->excludes(detach);
  run->add_option("command", options->command, "Command to run, after --")->required()->type_name("COMMAND...");
  CommandLine* shell =
      add_docker_part(*verb, session, {"shell", "Open a shell in a container, in this folder", open_shell}, options);
  add_container_options(*shell, *options);
}

}  // namespace tprimat::cli
