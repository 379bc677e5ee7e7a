#include "cli/verbs.h"

#include "cli/hand_over.h"

namespace tprimat::cli {

void add_verbs(CommandLine& program, Session& session) {
  add_run_verb(program, session);
  add_trainer_verb(program, "train");
  add_extract_verb(program, session);
  add_compare_verb(program, session);
  add_why_verb(program, session);
  add_export_verb(program, session);
  add_archive_verb(program, session);
  add_profile_verb(program, session);
  add_probe_verb(program, session);
  add_estimate_verb(program, session);
  add_plan_verb(program, session);
  add_claim_verb(program, session);
  add_published_verb(program, session);
  add_trainer_verb(program, "data");
  add_doctor_verb(program, session);
  add_config_verb(program, session);
  add_docker_verb(program, session);
  add_detect_verb(program, session);
  add_completion_verb(program, session);
  add_man_verb(program, session);
}

}  // namespace tprimat::cli
