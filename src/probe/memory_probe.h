#pragma once

#include <cstdint>
#include <string>

#include "text/fields.h"

namespace tprimat {

// What main memory delivers to all threads together. Bytes that the program asks for are counted: a write's own fetch
// is not.
struct MemoryBandwidth {
  double read_bytes_per_second = 0;   // sum of one array
  double triad_bytes_per_second = 0;  // a = b + s·c, 24 bytes per element (STREAM)
  int64_t buffer_bytes = 0;
  std::string how;

  static constexpr auto fields() {
    using M = MemoryBandwidth;
    return std::tuple{field("read_bytes_per_second", &M::read_bytes_per_second, "summing one array"),
                      field("triad_bytes_per_second", &M::triad_bytes_per_second, "a = b + s·c, 24 bytes per element"),
                      field("buffer_bytes", &M::buffer_bytes, "memory that is walked through, bytes"),
                      field("how", &M::how, "rule of the measurement")};
  }
};

// Takes about two seconds, and 1 GB or four times the last cache, whichever is more, but at most a quarter of the free
// memory. `threads` as in measure_gemm_peak. Varies more from pass to pass than matrix products do.
MemoryBandwidth measure_memory_bandwidth(int threads);

}  // namespace tprimat
