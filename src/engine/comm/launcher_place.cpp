#include "comm/launcher_place.h"

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat::engine {
namespace {

constexpr int k_max_ranks = 1 << 24;

std::optional<int> parse_count(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0 || value > k_max_ranks) return std::nullopt;
  return value;
}

std::optional<int> read_count(const EnvironmentReader& read, const std::string& name) {
  const auto text = read(name);
  return text ? parse_count(*text) : std::nullopt;
}

// Names of the four variables of one launcher.
struct Names {
  const char *rank, *size, *local_rank, *local_size;
};
constexpr Names k_open_mpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                              "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names k_mpich = {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
constexpr Names k_torchrun = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
// Of a step that srun started. A batch script itself has SLURM_PROCID too, but it is one process only.
constexpr Names k_srun = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""};

// "2(x3),1": three nodes with two tasks each, then one with one. The tasks of node `node`.
std::optional<int> tasks_of_node(std::string_view list, int node) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    std::string_view entry = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    int nodes = 1;
    if (const size_t bracket = entry.find("(x"); bracket != entry.npos && entry.ends_with(')')) {
      nodes = parse_count(entry.substr(bracket + 2, entry.size() - bracket - 3)).value_or(0);
      entry = entry.substr(0, bracket);
    }
    if (node < nodes) return parse_count(entry);
    node -= nodes;
  }
  return std::nullopt;
}

std::optional<int> read_slurm_local_size(const EnvironmentReader& read) {
  const auto list = read("SLURM_STEP_TASKS_PER_NODE");
  return list ? tasks_of_node(*list, read_count(read, "SLURM_NODEID").value_or(0)) : std::nullopt;
}

std::optional<LauncherPlace> read_place(const EnvironmentReader& read, const Names& names, RendezvousKind rendezvous) {
  const auto rank = read_count(read, names.rank), size = read_count(read, names.size);
  if (!rank || !size || *rank >= *size) return std::nullopt;
  LauncherPlace place{*rank, *size, 0, 1, rendezvous};
  const auto local_rank = read_count(read, names.local_rank);
  const auto local_size = *names.local_size != '\0' ? read_count(read, names.local_size) : read_slurm_local_size(read);
  if (local_rank && local_size && *local_rank < *local_size && *local_size <= *size) {
    place.local_rank = *local_rank;
    place.local_size = *local_size;
  }
  return place;
}

}  // namespace

LauncherPlace read_launcher_place(const EnvironmentReader& read) {
  const auto met =
      read("MASTER_ADDR") && read("MASTER_PORT") ? read_place(read, k_torchrun, RendezvousKind::tcp) : std::nullopt;
  if (met && read("TORCHELASTIC_RUN_ID")) return *met;
  for (const Names& names : {k_open_mpi, k_mpich})
    if (const auto place = read_place(read, names, RendezvousKind::mpi)) return *place;
  if (met) return *met;
  return read_place(read, k_srun, RendezvousKind::mpi).value_or(LauncherPlace());
}

LauncherPlace launcher_place() { return read_launcher_place(read_environment); }

}  // namespace tprimat::engine
