#include "comm/launcher_place.h"

#include <gtest/gtest.h>

#include <map>

namespace tprimat::engine {
namespace {

using Environment = std::map<std::string, std::string>;

std::array<int, 4> place_in(const Environment& environment) {
  const LauncherPlace place = read_launcher_place([&](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  });
  return {place.rank, place.size, place.local_rank, place.local_size};
}
using Place = std::array<int, 4>;
constexpr Place k_alone = {0, 1, 0, 1};

TEST(LauncherPlace, OfEachLauncher) {
  EXPECT_EQ(place_in({}), k_alone);
  EXPECT_EQ(place_in({{"OMPI_COMM_WORLD_RANK", "5"},
                      {"OMPI_COMM_WORLD_SIZE", "8"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}),
            (Place{5, 8, 1, 4}));
  EXPECT_EQ(place_in({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}}),
            (Place{1, 2, 1, 2}));
}

TEST(LauncherPlace, OfAStepOfSlurm) {
  Environment step = {{"SLURM_PROCID", "6"},
                      {"SLURM_STEP_NUM_TASKS", "7"},
                      {"SLURM_LOCALID", "0"},
                      {"SLURM_NODEID", "3"},
                      {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}};
  EXPECT_EQ(place_in(step), (Place{6, 7, 0, 1}));
  step["SLURM_NODEID"] = "2";
  step["SLURM_LOCALID"] = "1";
  EXPECT_EQ(place_in(step), (Place{6, 7, 1, 2}));
  for (const char* strange : {"", ",", "2(x", "(x3)", "2(x99999999999)", "x", "2(x3),"}) {
    step["SLURM_NODEID"] = "5";
    step["SLURM_STEP_TASKS_PER_NODE"] = strange;
    EXPECT_EQ(place_in(step), (Place{6, 7, 0, 1})) << strange;
  }
}

TEST(LauncherPlace, ABatchScriptOfSlurmIsOneProcess) {
  EXPECT_EQ(place_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}}), k_alone);
}

Environment with(Environment environment, const Environment& more) {
  environment.insert(more.begin(), more.end());
  return environment;
}
const Environment k_of_open_mpi = {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}};
const Environment k_of_srun = {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_LOCALID", "1"}};
const Environment k_exported = {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
const Environment k_of_torchrun =
    with(k_exported, {{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}, {"TORCHELASTIC_RUN_ID", "none"}});

RendezvousKind rendezvous_in(const Environment& environment) {
  return read_launcher_place([&](const std::string& name) -> std::optional<std::string> {
           const auto found = environment.find(name);
           return found == environment.end() ? std::nullopt : std::optional(found->second);
         })
      .rendezvous;
}

TEST(LauncherPlace, OfTorchrunAndOfWhatSetsItsVariables) {
  EXPECT_EQ(place_in(k_of_torchrun), (Place{5, 8, 1, 4}));
  EXPECT_EQ(place_in(k_exported), (Place{5, 8, 0, 1}));
  EXPECT_EQ(rendezvous_in(k_of_torchrun), RendezvousKind::tcp);
  EXPECT_EQ(rendezvous_in(k_exported), RendezvousKind::tcp);
}

TEST(LauncherPlace, WithoutAPlaceToMeetThereIsNoGroup) {
  for (const char* missing : {"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"}) {
    Environment environment = k_of_torchrun;
    environment.erase(missing);
    EXPECT_EQ(place_in(environment), k_alone) << missing;
    EXPECT_EQ(rendezvous_in(environment), RendezvousKind::none) << missing;
  }
}

TEST(LauncherPlace, TheInnermostLauncherCounts) {
  EXPECT_EQ(rendezvous_in(k_of_open_mpi), RendezvousKind::mpi);
  EXPECT_EQ(rendezvous_in(k_of_srun), RendezvousKind::mpi);
  // One torchrun per machine, each started by mpirun or srun.
  EXPECT_EQ(place_in(with(k_of_torchrun, k_of_open_mpi)), (Place{5, 8, 1, 4}));
  EXPECT_EQ(place_in(with(k_of_torchrun, k_of_srun)), (Place{5, 8, 1, 4}));
  // Variables that a script exports for whatever it starts.
  EXPECT_EQ(place_in(with(k_exported, k_of_open_mpi)), (Place{1, 3, 0, 1}));
  EXPECT_EQ(rendezvous_in(with(k_exported, k_of_open_mpi)), RendezvousKind::mpi);
  EXPECT_EQ(place_in(with(k_exported, k_of_srun)), (Place{5, 8, 0, 1}));
  EXPECT_EQ(rendezvous_in(with(k_exported, k_of_srun)), RendezvousKind::tcp);
}

TEST(LauncherPlace, NonsenseIsNoLauncher) {
  for (const char* rank : {"2", "-1", "one", "", "99999999999999"})
    EXPECT_EQ(place_in({{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", "2"}}), k_alone) << rank;
  EXPECT_EQ(place_in({{"OMPI_COMM_WORLD_RANK", "1"}}), k_alone);
}

}  // namespace
}  // namespace tprimat::engine
