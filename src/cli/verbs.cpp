#include "cli/verbs.h"

namespace tprimat {

void add_verbs(CLI::App& program, Session& session) {
  add_run_verb(program, session);
  add_train_verb(program, session);
  add_extract_verb(program, session);
  add_compare_verb(program, session);
  add_export_verb(program, session);
  add_archive_verb(program, session);
  add_profile_verb(program, session);
  add_probe_verb(program, session);
  add_estimate_verb(program, session);
  add_plan_verb(program, session);
  add_data_verb(program, session);
  add_doctor_verb(program, session);
  add_config_verb(program, session);
  add_docker_verb(program, session);
  add_detect_verb(program, session);
}

}  // namespace tprimat
