#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/build_info.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/output.h"
#include "cli/program_commands.h"
#include "cli/verbs.h"
#include "command_line/manual_page.h"
#include "command_line/output_target.h"
#include "command_line/suggest_name.h"
#include "text/format.h"
#include "text/words.h"

namespace tprimat::cli {
namespace {

constexpr const char* k_man_examples =
    "  tprimat man run | man -l -                        the page of `tprimat run`\n"
    "  tprimat man --output ~/.local/share/man/man1      all pages; then man tprimat, man tprimat-run\n"
    "\n`cmake --install` installs all pages.\n";

struct ManRequest {
  std::string command, output = k_stdout_name;
};

void require_command(const CommandInfo& program, const std::string& name) {
  std::vector<std::string> names;
  for (const CommandInfo& command : program.parts) {
    if (command.name == name) return;
    names.push_back(command.name);
  }
  throw Error(
      Problem{fmt::format("tprimat has no command '{}'; its commands are {}", printable(name), join(names, ", ")),
              "COMMAND", suggest_name(name, names)});
}

// Today's, or SOURCE_DATE_EPOCH's, by which packages are the same bytes on every day.
std::string page_date() {
  const auto epoch = parse_number<int64_t>(read_environment("SOURCE_DATE_EPOCH").value_or(""));
  const std::string moment = format_utc(epoch ? static_cast<double>(*epoch) : unix_time_seconds());
  return moment.substr(0, std::string("2026-01-01").size());
}

void write_page(const CommandInfo& program, const std::string& command, const ManRequest& request) {
  const std::string page = render_manual_page(program, command, {std::string(build_info().version), page_date()});
  if (names_stdout(request.output)) return write_stdout(page);
  const std::filesystem::path file = std::filesystem::path(request.output) / manual_page_file(program, command);
  write_file_atomically(file, page, Survives::kill);
  log_note("wrote " + file.string());
}

ExitStatus print_pages(const CommandLine& line, const ManRequest& request) {
  const CommandInfo program = describe_program(line);
  if (!request.command.empty()) require_command(program, request.command);
  write_page(program, request.command, request);
  if (request.command.empty() && !names_stdout(request.output))
    for (const CommandInfo& command : program.parts) write_page(program, command.name, request);
  return ExitStatus::done;
}

}  // namespace

void add_man_verb(CommandLine& program, Session& session) {
  CommandLine* verb = add_verb(program, session, "man", "Print the manual pages", k_man_examples);
  auto request = std::make_shared<ManRequest>();
  verb->add_option("COMMAND", request->command, "Command to explain (default: the program; with --output: all)")
      ->type_name("COMMAND");
  verb->add_option("--output", request->output, "Directory for the pages; -: stdout")
      ->type_name("DIR")
      ->capture_default_str();
  verb->callback([&session, &program, request] {
    session.action = [&program, request] { return print_pages(program, *request); };
  });
}

}  // namespace tprimat::cli
