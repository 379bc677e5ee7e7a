#include "cli/program_commands.h"

#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "cli/hand_over.h"
#include "launch/trainer_program.h"
#include "process/process.h"

namespace tprimat::cli {

CommandInfo describe_program(const CommandLine& program) {
  CommandInfo info = program.describe();
  info.name = printable(info.name);
  LocalRunner runner;
  try {
    const CommandInfo trainer = suite::read_trainer_commands(runner);
    for (CommandInfo& verb : info.parts)
      for (const CommandInfo& other : trainer.parts)
        if (verb.name == other.name && is_trainer_verb(verb.name)) verb = other;
  } catch (const Error& error) {
    Problem problem = error.problems().front();
    problem.what = "the options of train and data are left out: " + problem.what;
    log_warning(to_string(problem));
  }
  return info;
}

}  // namespace tprimat::cli
