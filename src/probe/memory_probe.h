#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/measuring.h"
#include "text/fields.h"

namespace tprimat {

// The kinds of McCalpin's STREAM, and reading alone. Bytes that the program asks for are counted, as STREAM does: a
// write's own fetch is not.
enum class StreamKernel {
  read,   // sum of one array      8 bytes per element
  copy,   // c = a                16
  scale,  // b = s·c              16
  add,    // c = a + b            24
  triad,  // a = b + s·c          24
};
template <>
struct EnumNames<StreamKernel> {
  static constexpr std::pair<StreamKernel, std::string_view> values[] = {{StreamKernel::read, "read"},
                                                                         {StreamKernel::copy, "copy"},
                                                                         {StreamKernel::scale, "scale"},
                                                                         {StreamKernel::add, "add"},
                                                                         {StreamKernel::triad, "triad"}};
};

struct MemoryRate {
  StreamKernel kind = StreamKernel::read;
  double bytes_per_second = 0;  // of the fastest pass
  Measured measured;

  static constexpr auto fields() {
    using M = MemoryRate;
    return std::tuple{
        field("kind", &M::kind, "read: a sum; copy: c = a; scale: b = s·c; add: c = a + b; triad: a = b + s·c"),
        field("bytes_per_second", &M::bytes_per_second, "read and written, of the fastest pass"),
        field("measured", &M::measured, "the measurement")};
  }
};

// What main memory delivers to all threads together.
struct MemoryBandwidth {
  std::vector<MemoryRate> kinds;
  int64_t buffer_bytes = 0;
  std::string how;
  double rate(StreamKernel kind) const;  // bytes/s; CHECKs that it was measured

  static constexpr auto fields() {
    using M = MemoryBandwidth;
    return std::tuple{field("kinds", &M::kinds, "by what is done with the memory"),
                      field("buffer_bytes", &M::buffer_bytes, "memory that is walked through, bytes"),
                      field("how", &M::how, "rule of the measurement")};
  }
};

// Walks through at least 1 GB and four times the last-level cache (less on machines with less free memory), for about
// three seconds with all kinds. `threads` as in measure_gemm_peak. Throws Error when memory runs out.
MemoryBandwidth measure_memory_bandwidth(int threads);
MemoryBandwidth measure_memory_bandwidth(int threads, const std::vector<StreamKernel>& kinds,
                                         const StopRequest& is_stopped = {});

}  // namespace tprimat
