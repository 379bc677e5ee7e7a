#pragma once

namespace tprimat {

// What the program says to the shell. Documented in docs/cli.md; one list for every command.
enum class ExitStatus {
  done = 0,
  work_failed = 1,        // some work failed, or a result is invalid (named)
  usage = 2,              // wrong usage or configuration; nothing was started
  not_comparable = 3,     // compared, but the runs are not comparable
  missing_component = 4,  // a required component is missing (named, with the command that installs it)
  gate_failed = 5,        // a regression gate failed
  inconclusive = 6,       // the difference is within the noise and the question asked for an answer
  interrupted = 130,      // stopped by Ctrl-C
};

}  // namespace tprimat
