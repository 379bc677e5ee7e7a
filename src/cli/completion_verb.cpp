#include "command_line/completion.h"

#include <memory>

#include "base/error.h"
#include "base/output.h"
#include "cli/program_commands.h"
#include "cli/verbs.h"
#include "command_line/value_checks.h"
#include "text/choice.h"

namespace tprimat::cli {
namespace {

constexpr const char* k_completion_examples =
    "  source <(tprimat completion bash)                 this shell; put it into ~/.bashrc for all\n"
    "  tprimat completion zsh > \"${fpath[1]}/_tprimat\"   every new zsh\n"
    "  tprimat completion fish > ~/.config/fish/completions/tprimat.fish\n"
    "\n`cmake --install` installs all three.\n";

}  // namespace

void add_completion_verb(CommandLine& program, Session& session) {
  CommandLine* verb =
      add_verb(program, session, "completion",
               "Print a script that completes commands, options and their values in a shell", k_completion_examples);
  auto shell = std::make_shared<std::string>();
  verb->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->transform(name_of<Shell>())
      ->choices(choices_of<Shell>())
      ->type_name("SHELL");
  verb->callback([&session, &program, shell] {
    session.action = [&program, shell] {
      write_stdout(render_completion(parse_choice<Shell>(*shell, "SHELL"), describe_program(program)));
      return ExitStatus::done;
    };
  });
}

}  // namespace tprimat::cli
