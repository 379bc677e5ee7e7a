#pragma once

#include "cli/session.h"

namespace tprimat {

// One per file, <name>_verb.cpp.
void add_run_verb(CLI::App& program, Session& session);
void add_train_verb(CLI::App& program, Session& session);
void add_extract_verb(CLI::App& program, Session& session);
void add_compare_verb(CLI::App& program, Session& session);
void add_export_verb(CLI::App& program, Session& session);
void add_archive_verb(CLI::App& program, Session& session);
void add_config_verb(CLI::App& program, Session& session);
void add_doctor_verb(CLI::App& program, Session& session);
void add_docker_verb(CLI::App& program, Session& session);
void add_detect_verb(CLI::App& program, Session& session);
void add_probe_verb(CLI::App& program, Session& session);
void add_profile_verb(CLI::App& program, Session& session);
void add_plan_verb(CLI::App& program, Session& session);
void add_estimate_verb(CLI::App& program, Session& session);
void add_data_verb(CLI::App& program, Session& session);

// All of them, in the order of `tprimat --help`.
void add_verbs(CLI::App& program, Session& session);

}  // namespace tprimat
