#include "base/error.h"
#include "command_line/command_info.h"
#include "program/verbs.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat::engine {
namespace {

constexpr const char* k_commands_examples =
    "  tprimat-train commands --json                for `tprimat completion` and `tprimat man`\n";

std::string render_commands(const CommandInfo& program) {
  TextTable table{{"command", "summary"}, {}, {}};
  for (const CommandInfo& command : program.parts) table.rows.push_back({command.name, command.summary});
  return render_text(table);
}

}  // namespace

void add_commands_verb(CommandLine& program, Session& session) {
  CommandLine* verb =
      add_verb(program, session, "commands", "Describe these commands and their options", k_commands_examples);
  add_json_option(*verb, session);
  verb->callback([&session, &program] {
    session.action = [&session, &program] {
      const CommandInfo info = program.describe();
      print_result(session.json ? print_json(to_json(info)) : render_commands(info));
      return ExitStatus::done;
    };
  });
}

}  // namespace tprimat::engine
