#include "cli/hand_over.h"
#include "cli/verbs.h"
#include "command_line/session.h"

int main(int argc, char** argv) {
  using namespace tprimat::cli;
  using namespace tprimat;
  if (is_trainer_verb(argc, argv)) return run_trainer_verb(argc, argv);
  return run_program(
      {"How fast, how cheaply and how close to the limit does this hardware train this language model?", add_verbs},
      argc, argv);
}
