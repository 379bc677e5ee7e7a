#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/enum_names.h"
#include "text/fields.h"

namespace tprimat {

// Format of the reports of `tprimat probe --json`. Older reports do not state it and are read as this one.
inline constexpr int64_t k_probe_version = 1;

enum class EndedBy { noise, time };

struct Measured {
  double fastest_seconds = 0, median_seconds = 0;  // of one repetition, by windows
  double relative_noise = 0;                       // 1.4826 · median |t − median t| / median t, over the windows
  int64_t windows = 0;
  EndedBy ended_by = EndedBy::time;
  double cpu_share = 1;  // of the threads' time, in the fastest window; below 1 where other processes took some
  bool slowed = false;   // the second half of the windows took over 5 % longer than the first: throttled or disturbed

  static constexpr auto fields() {
    using M = Measured;
    return field_list(
        field("fastest_seconds", &M::fastest_seconds, "one repetition in the fastest window"),
        field("median_seconds", &M::median_seconds, "one repetition in the median window"),
        field("relative_noise", &M::relative_noise, "1.4826 x median absolute deviation / median of the windows"),
        field("windows", &M::windows, "windows measured"),
        field("ended_by", &M::ended_by, "noise: the windows agreed; time: the time limit was reached before"),
        field("cpu_share", &M::cpu_share, "share of the threads' time that the system gave to this process"),
        field("slowed", &M::slowed, "the second half was over 5 % slower than the first: throttled or disturbed"));
  }
};

// Number format of a matrix product's inputs. Sums are kept in fp32 (int8: int32).
enum class ProductFormat { fp32, bf16, fp16, int8 };

// Which product of a linear layer y = x·W: x [tokens, inputs], W [inputs, outputs].
enum class ProductPass {
  forward,  // y  = x·W      m = tokens, n = outputs, k = inputs
  dgrad,    // dx = dy·Wᵀ    m = tokens, n = inputs,  k = outputs
  wgrad,    // dW = xᵀ·dy    m = inputs, n = outputs, k = tokens; x is stored as in forward, the result is fp32
};

// The fastest window of one product.
struct GemmRate {
  std::string name;
  ProductPass pass = ProductPass::forward;
  int64_t m = 0, n = 0, k = 0;
  double flops_per_second = 0;  // 2·m·n·k per product
  Measured measured;

  static constexpr auto fields() {
    using G = GemmRate;
    return field_list(
        field("name", &G::name, "which product"),
        field("pass", &G::pass, "forward, or the gradient of the input (dgrad) or of the weights (wgrad)"),
        field("m", &G::m, "rows of the left matrix and the result"),
        field("n", &G::n, "columns of the right matrix and the result"),
        field("k", &G::k, "columns of the left matrix, rows of the right one"),
        field("flops_per_second", &G::flops_per_second, "2·m·n·k per product, in the fastest window"),
        field("measured", &G::measured, "the measurement"));
  }
};

// This CPU's achievable matrix-product rate, as a denominator for MFU where no catalogue states a peak.
struct GemmPeak {
  ProductFormat precision = ProductFormat::fp32;
  double flops_per_second = 0;
  double cpu_share = 0;  // in the fastest window of that shape
  std::string how;       // the rule by which it was measured
  std::vector<GemmRate> shapes;

  static constexpr auto fields() {
    using G = GemmPeak;
    return field_list(field("precision", &G::precision, "number format of the inputs"),
                      field("flops_per_second", &G::flops_per_second, "of the fastest shape"),
                      field("cpu_share", &G::cpu_share,
                            "share of the threads' time that the system gave; below 0.95 other work disturbed"),
                      field("how", &G::how, "rule of the measurement"),
                      field("shapes", &G::shapes, "rate of each shape"));
  }
};

// The kinds of McCalpin's STREAM, and reading alone. Bytes that the program asks for are counted, as STREAM does:
// fetches for writes are not.
enum class StreamKernel {
  read,   // sum of one array      8 bytes per element
  copy,   // c = a                16
  scale,  // b = s·c              16
  add,    // c = a + b            24
  triad,  // a = b + s·c          24
};

struct MemoryRate {
  StreamKernel kind = StreamKernel::read;
  double bytes_per_second = 0;  // of the fastest pass
  Measured measured;

  static constexpr auto fields() {
    using M = MemoryRate;
    return field_list(
        field("kind", &M::kind, "read: a sum; copy: c = a; scale: b = s·c; add: c = a + b; triad: a = b + s·c"),
        field("bytes_per_second", &M::bytes_per_second, "read and written, of the fastest pass"),
        field("measured", &M::measured, "the measurement"));
  }
};

// Bandwidth of main memory for all threads together.
struct MemoryBandwidth {
  std::vector<MemoryRate> kinds;
  int64_t buffer_bytes = 0;
  std::string how;
  // bytes/s; nothing where it was not measured
  std::optional<double> rate(StreamKernel kind) const {
    for (const MemoryRate& each : kinds)
      if (each.kind == kind) return each.bytes_per_second;
    return std::nullopt;
  }

  static constexpr auto fields() {
    using M = MemoryBandwidth;
    return field_list(field("kinds", &M::kinds, "by what is done with the memory"),
                      field("buffer_bytes", &M::buffer_bytes, "memory that is walked through, bytes"),
                      field("how", &M::how, "rule of the measurement"));
  }
};

// The rates that this machine achieves.
struct ProbeReport {
  int64_t probe_version = k_probe_version;
  std::string cpu;  // as the processor gives it
  int64_t threads = 0;
  std::optional<double> memory_bytes;          // that this machine and its limits leave to a training
  std::vector<GemmPeak> matmul;                // one per format that the CPU has instructions for
  std::vector<ProductFormat> no_instructions;  // the other formats
  MemoryBandwidth memory;

  // Null where it was not measured.
  const GemmPeak* find_peak(ProductFormat format) const {
    for (const GemmPeak& each : matmul)
      if (each.precision == format) return &each;
    return nullptr;
  }

  static constexpr auto fields() {
    using P = ProbeReport;
    return field_list(
        field("probe_version", &P::probe_version, "format of this report"),
        field("cpu", &P::cpu, "as the processor gives it"), field("threads", &P::threads, "threads that measured"),
        field("memory_bytes", &P::memory_bytes, "installed memory, or the container's limit"),
        field("matmul", &P::matmul, "achievable matrix-product rate by number format"),
        field("no_instructions", &P::no_instructions, "number formats that this processor has no instructions for"),
        field("memory", &P::memory, "achievable memory bandwidth"));
  }
};

// Below this share of the threads' time, other work made a measured rate too low.
inline constexpr double k_undisturbed_share = 0.95;

}  // namespace tprimat
