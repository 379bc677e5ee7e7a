#include "launch/launchers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace tprimat {
namespace {

using Words = std::vector<std::string>;

void require_mpirun(int64_t ranks) {
  if (is_in_path("mpirun")) return;
  throw Error(Problem{fmt::format("this layout needs {} ranks, and there is no mpirun to start them", ranks), "PATH",
                      "sudo apt-get install openmpi-bin"},
              ExitStatus::missing_component);
}

// Threads are placed by the system, not by mpirun, which would bind each rank to one core. More ranks than processors
// are allowed: a layout can be tried on a small machine. In containers everybody is root.
Words mpirun_words(int64_t ranks) {
  require_mpirun(ranks);
  return {"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(ranks)};
}

Words torchrun_words(const std::string& python, int64_t ranks) {
  return {python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", std::to_string(ranks)};
}

}  // namespace

bool is_in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    if (::access((std::string(rest.substr(0, colon)) + "/" + program).c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return false;
}

Words start_ranks(const TrainProgram& program, int64_t ranks) {
  Words command;
  if (program.start == RankStart::mpi) command = mpirun_words(ranks);
  if (program.start == RankStart::torchrun) command = torchrun_words(program.python, ranks);
  command.insert(command.end(), program.words.begin(), program.words.end());
  return command;
}

}  // namespace tprimat
