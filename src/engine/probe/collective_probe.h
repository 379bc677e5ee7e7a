#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "device/device.h"
#include "probe/measuring.h"
#include "text/fields.h"

namespace tprimat::engine {

enum class CollectiveKind { all_reduce, all_gather, reduce_scatter, all_to_all, send_receive };

// One collective over one size of data. Definitions of NVIDIA's nccl-tests (doc/PERFORMANCE.md): S is the size of the
// whole data (what a rank reduces; what all ranks gather or scatter together; what each rank has for all, itself
// included; what each rank sends to the next), t the time of the slowest rank, R the number of ranks; algorithm
// bandwidth = S / t; bus bandwidth = S / t · factor, which compares with the speed of the link whatever R is:
//   all_reduce 2·(R − 1)/R   all_gather, reduce_scatter, all_to_all (R − 1)/R   send_receive 1
struct CollectiveRate {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int64_t bytes = 0;
  double algorithm_bytes_per_second = 0, bus_bytes_per_second = 0;  // by the median
  Measured measured;

  static constexpr auto fields() {
    using C = CollectiveRate;
    return field_list(field("kind", &C::kind, "collective"), field("bytes", &C::bytes, "S: total data size"),
                      field("algorithm_bytes_per_second", &C::algorithm_bytes_per_second, "S / median time"),
                      field("bus_bytes_per_second", &C::bus_bytes_per_second,
                            "algorithm bandwidth times 2·(R − 1)/R for all_reduce, (R − 1)/R for all_gather, "
                            "reduce_scatter and all_to_all"),
                      field("measured", &C::measured, "the measurement, by the slowest rank of each window"));
  }
};

struct CollectiveReport {
  int64_t ranks = 0;
  std::string how;
  std::vector<CollectiveRate> rates;

  static constexpr auto fields() {
    using C = CollectiveReport;
    return field_list(field("ranks", &C::ranks, "R"), field("how", &C::how, "measurement rule"),
                      field("rates", &C::rates, "by collective and size"));
  }
};

double bus_factor(CollectiveKind kind, int ranks);

inline const std::vector<int64_t> k_collective_bytes = {1 << 10, 16 << 10, 256 << 10, 4 << 20, 64 << 20};

// Collective over `group`, which has at least two ranks and exchanges what lies in each rank's `device`; every rank
// gets the same report. About 0.3 s for each collective and size, in fp32.
CollectiveReport measure_collectives(Communicator& group, Device& device = cpu_device(),
                                     const std::vector<int64_t>& sizes = k_collective_bytes);

}  // namespace tprimat::engine
