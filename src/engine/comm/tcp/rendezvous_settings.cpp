#include <fmt/format.h>

#include <charconv>
#include <string>

#include "base/error.h"
#include "comm/tcp/rendezvous.h"

namespace tprimat::engine {
namespace {

constexpr int k_max_rendezvous_seconds = 7 * 24 * 3600;

// A whole number from 1 to most.
int read_setting(const std::string& name, const std::string& text, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= 1 && value <= most) return value;
  throw Error(Problem{fmt::format("must be a whole number from 1 to {}, got '{}'", most, text), name, ""});
}

int read_port(const EnvironmentReader& read) {
  if (const auto own = read("TPRIMAT_RENDEZVOUS_PORT")) return read_setting("TPRIMAT_RENDEZVOUS_PORT", *own, 65535);
  const bool is_taken = read("TORCHELASTIC_USE_AGENT_STORE") == "True";
  return read_setting("MASTER_PORT", read("MASTER_PORT").value_or(""), is_taken ? 65534 : 65535) + (is_taken ? 1 : 0);
}

// What tells this run from an earlier one whose processes may still be there.
std::string name_of_run(const EnvironmentReader& read) {
  if (const auto run = read("TORCHELASTIC_RUN_ID"))
    return *run + "/" + read("TORCHELASTIC_RESTART_COUNT").value_or("0");
  if (const auto job = read("SLURM_JOB_ID")) return *job + "." + read("SLURM_STEP_ID").value_or("");
  return "";
}

}  // namespace

RendezvousSettings read_rendezvous_settings(const EnvironmentReader& read, const LauncherPlace& place) {
  RendezvousSettings settings;
  settings.rank = place.rank;
  settings.size = place.size;
  settings.host = read("MASTER_ADDR").value_or("");
  settings.port = read_port(read);
  settings.one_machine = place.local_size == place.size;
  settings.run = name_of_run(read);
  if (const auto seconds = read("TPRIMAT_RENDEZVOUS_TIMEOUT"))
    settings.seconds = read_setting("TPRIMAT_RENDEZVOUS_TIMEOUT", *seconds, k_max_rendezvous_seconds);
  return settings;
}

}  // namespace tprimat::engine
