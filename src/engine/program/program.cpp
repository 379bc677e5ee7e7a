// tprimat-train: the native trainer, what its machine achieves, and the data that it reads.
#include "comm/communicator.h"
#include "command_line/session.h"
#include "program/verbs.h"

int main(int argc, char** argv) {
  using namespace tprimat::engine;
  using namespace tprimat;
  Program program;
  program.purpose = "The native trainer of tprimat; runs `tprimat train`, `probe` and `data`";
  program.add_verbs = [](CommandLine& app, Session& session) {
    add_train_verb(app, session);
    add_probe_verb(app, session);
    add_data_verb(app, session);
    add_libraries_verb(app, session);
    add_commands_verb(app, session);
  };
  program.after_failure = abort_ranks;  // those of the same training would wait for this one
  return run_program(program, argc, argv);
}
