#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "result/probe_report.h"
#include "text/fields.h"

namespace tprimat {

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
  int64_t probe_version = k_probe_version;
  int64_t ranks = 0;
  std::optional<std::string> device;  // "cpu", or the GPU of each rank
  std::string how;
  std::vector<CollectiveRate> rates;

  static constexpr auto fields() {
    using C = CollectiveReport;
    return field_list(field("probe_version", &C::probe_version, "format of this report"),
                      field("ranks", &C::ranks, "R"), field("device", &C::device, "cpu, or the GPU of each rank"),
                      field("how", &C::how, "measurement rule"), field("rates", &C::rates, "by collective and size"));
  }
};

}  // namespace tprimat
