#include "comm/launcher_place.h"

#include <gtest/gtest.h>

#include <map>

namespace tprimat {
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

TEST(LauncherPlace, TorchrunIsNotMpi) { EXPECT_EQ(place_in({{"RANK", "1"}, {"WORLD_SIZE", "2"}}), k_alone); }

TEST(LauncherPlace, NonsenseIsNoLauncher) {
  for (const char* rank : {"2", "-1", "one", "", "99999999999999"})
    EXPECT_EQ(place_in({{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", "2"}}), k_alone) << rank;
  EXPECT_EQ(place_in({{"OMPI_COMM_WORLD_RANK", "1"}}), k_alone);
}

}  // namespace
}  // namespace tprimat
