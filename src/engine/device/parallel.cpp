#include "device/parallel.h"

#include "device/openmp.h"
#include "telemetry/machine.h"

namespace tprimat::engine {

void set_thread_count(int64_t threads) {
  const int64_t usable = threads > 0 ? threads : read_cpu_facts("/", count_affinity()).usable_threads;
  ThreadPool::shared().resize(static_cast<int>(usable));
  omp_set_num_threads(thread_count());  // oneDNN's
  omp_set_dynamic(0);
}

int thread_count() { return ThreadPool::shared().size(); }

}  // namespace tprimat::engine
