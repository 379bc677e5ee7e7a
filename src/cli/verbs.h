#pragma once

#include "command_line/session.h"

namespace tprimat::cli {

// One per file, <name>_verb.cpp.
void add_run_verb(CommandLine& program, Session& session);
void add_extract_verb(CommandLine& program, Session& session);
void add_compare_verb(CommandLine& program, Session& session);
void add_why_verb(CommandLine& program, Session& session);
void add_export_verb(CommandLine& program, Session& session);
void add_archive_verb(CommandLine& program, Session& session);
void add_config_verb(CommandLine& program, Session& session);
void add_doctor_verb(CommandLine& program, Session& session);
void add_docker_verb(CommandLine& program, Session& session);
void add_detect_verb(CommandLine& program, Session& session);
void add_probe_verb(CommandLine& program, Session& session);
void add_profile_verb(CommandLine& program, Session& session);
void add_plan_verb(CommandLine& program, Session& session);
void add_claim_verb(CommandLine& program, Session& session);
void add_published_verb(CommandLine& program, Session& session);
void add_estimate_verb(CommandLine& program, Session& session);
void add_completion_verb(CommandLine& program, Session& session);
void add_man_verb(CommandLine& program, Session& session);

// All of them, in the order of `tprimat --help`.
void add_verbs(CommandLine& program, Session& session);

}  // namespace tprimat::cli
