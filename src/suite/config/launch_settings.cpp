#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/draft.h"
#include "config/kubernetes_settings.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

// Copies stated values; others keep the default.
template <class Raw, class Spec>
void take_stated(const Raw& from, Spec& to) {
  for_each_pair(from, to, [](std::string_view, const auto& stated, auto& value) {
    if (stated) value = *stated;
  });
}

void resolve_nodes(Draft& draft) {
  LauncherSettings& to = draft.experiment.launch;
  const std::string path = "launch.nodes";
  const bool listed = to.launcher == Launcher::mpi && !to.mpi.hosts.empty();
  const auto hosts = static_cast<int64_t>(to.mpi.hosts.size());
  to.nodes = take_or(draft, draft.raw.launch.nodes, path, listed ? hosts : int64_t{1},
                     listed ? derived_by("number of launch.mpi.hosts") : Origin{Provenance::assumed});
  if (!draft.diagnosis.are_sound({"launch.launcher", path, "launch.mpi"})) return;
  if (to.nodes > 1 && (to.launcher == Launcher::local || to.launcher == Launcher::docker))
    return draft.fail(path,
                      fmt::format("launch.nodes is {}, but the launcher {} starts ranks on this machine only", to.nodes,
                                  enum_name(to.launcher)),
                      "use the launcher mpi, slurm or kubernetes for several nodes");
  if (listed && hosts != to.nodes)
    draft.fail(path, fmt::format("launch.nodes is {}, but launch.mpi.hosts names {}", to.nodes, hosts),
               "remove launch.nodes, or list as many hosts");
}

// sbatch takes 90, 90:00, 1:30:00, 2-0, 2-12:30 and 2-12:30:00.
bool is_slurm_time(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789:-") == std::string::npos;
}

void check_slurm(Draft& draft) {
  const SlurmSettings& slurm = draft.experiment.launch.slurm;
  if (slurm.time && draft.is_sound("launch.slurm.time") && !is_slurm_time(*slurm.time))
    draft.fail("launch.slurm.time",
               fmt::format("launch.slurm.time must be minutes, H:M:S or D-H:M:S, got '{}'", slurm.time->substr(0, 40)),
               "for example  time: \"01:30:00\"");
}

// These become lines of a job script, where a line break would start another line.
void check_one_line(Draft& draft, const std::string& path, const std::string& text) {
  if (text.find_first_of("\n\r") == std::string::npos || !draft.is_sound(path)) return;
  draft.fail(path, path + " contains a line break", "write it on one line");
}

// They become words of scripts and of comma-separated lists, where other characters would change the meaning.
void check_variable_names(Draft& draft, const std::string& path, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (!is_variable_name(name) && draft.is_sound(path))
      draft.fail(path, fmt::format("'{}' in {} is not a variable name", printable(name.substr(0, 40)), path),
                 "use only letters, digits and _, and no leading digit; the values come from your environment");
}

// A word that begins with - would be an option of the program that takes it.
void check_word(Draft& draft, const std::string& path, const std::string& word) {
  if (!draft.is_sound(path) || (!word.starts_with('-') && printable(word) == word)) return;
  draft.fail(path, fmt::format("{} cannot be '{}'", path, printable(word.substr(0, 40))),
             "it must not begin with - or contain control characters");
}

// mpirun takes them as a comma-separated list of names, each with its number of slots behind a colon.
void check_hosts(Draft& draft) {
  const std::string path = "launch.mpi.hosts";
  for (const std::string& host : draft.experiment.launch.mpi.hosts) {
    const size_t colon = std::min(host.find(':'), host.size());
    const bool sound =
        colon > 0 && host.front() != '-' && host.find_first_not_of("0123456789", colon + 1) == std::string::npos &&
        host.substr(0, colon).find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
            std::string::npos;
    if (!sound && draft.is_sound(path))
      draft.fail(path, fmt::format("'{}' in {} is not a host name", printable(host.substr(0, 40)), path),
                 "for example  hosts: [node1, node2]");
  }
}

void check_words(Draft& draft) {
  const LauncherSettings& launch = draft.experiment.launch;
  check_variable_names(draft, "launch.slurm.container_env", launch.slurm.container_env);
  check_variable_names(draft, "launch.docker.environment", launch.docker.environment);
  check_word(draft, "launch.docker.image", launch.docker.image);
  check_word(draft, "launch.program_inside", launch.program_inside);
  check_word(draft, "launch.python_inside", launch.python_inside);
  check_hosts(draft);
}

void check_lines(Draft& draft) {
  const SlurmSettings& slurm = draft.experiment.launch.slurm;
  const std::array<std::pair<const char*, const std::optional<std::string>*>, 4> texts = {
      {{"partition", &slurm.partition},
       {"account", &slurm.account},
       {"qos", &slurm.qos},
       {"nodelist", &slurm.nodelist}}};
  for (const auto& [key, text] : texts) check_one_line(draft, std::string("launch.slurm.") + key, text->value_or(""));
  for (const std::string& word : slurm.arguments) check_one_line(draft, "launch.slurm.arguments", word);
}

}  // namespace

void resolve_launch(Draft& draft) {
  raw::Launch& from = draft.raw.launch;
  LauncherSettings& to = draft.experiment.launch;
  to.launcher = take_or(draft, from.launcher, "launch.launcher", to.launcher);
  take_stated(from, to);
  take_stated(from.mpi, to.mpi);
  take_stated(from.slurm, to.slurm);
  take_stated(from.docker, to.docker);
  resolve_kubernetes(draft);
  resolve_nodes(draft);
  check_slurm(draft);
  check_lines(draft);
  check_words(draft);
}

}  // namespace tprimat::suite
