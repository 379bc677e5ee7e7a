#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "text/json_fields.h"
#include "trace/profile_summary.h"

namespace tprimat {
namespace {

constexpr const char* k_profile_examples =
    "  tprimat profile --summarise trace.json.gz\n"
    "  tprimat profile --summarise perf_report.xlsx --json\n";

ExitStatus print_summary(const Session& session, const std::string& file) {
  const ProfileSummary summary = summarise_profile(std::filesystem::path(file));
  print_result(session.json ? print_json(to_json(summary)) : render_profile(summary));
  return ExitStatus::done;
}

}  // namespace

void add_profile_verb(CLI::App& program, Session& session) {
  CLI::App* verb = add_verb(program, session, "profile", "Say where the time of a profiler's trace went", k_profile_examples);
  auto file = std::make_shared<std::string>();
  verb->add_option("--summarise", *file,
                   "PyTorch Chrome trace (.json, .json.gz) or TraceLens report (.xlsx) to summarise")
      ->required()
      ->type_name("FILE");
  add_json_option(*verb, session);
  verb->callback([&session, file] { session.action = [&session, file] { return print_summary(session, *file); }; });
}

}  // namespace tprimat
