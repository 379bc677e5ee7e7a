#include "device/parallel.h"

#include <sched.h>

namespace tprimat {
namespace {

int usable_processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return std::max(1, omp_get_num_procs());
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace

void set_thread_count(int64_t threads) {
  omp_set_num_threads(threads > 0 ? static_cast<int>(threads) : usable_processors());
  omp_set_dynamic(0);
}

int thread_count() { return omp_get_max_threads(); }

}  // namespace tprimat
