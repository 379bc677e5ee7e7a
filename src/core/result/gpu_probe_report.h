#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "result/probe_report.h"
#include "spec/names.h"
#include "text/fields.h"

namespace tprimat {

struct DeviceMeasured {
  double fastest_seconds = 0, median_seconds = 0;  // of one repetition, by windows
  double relative_noise = 0;
  int64_t windows = 0;
  EndedBy ended_by = EndedBy::time;
  bool slowed = false;

  static constexpr auto fields() {
    using M = DeviceMeasured;
    return field_list(
        field("fastest_seconds", &M::fastest_seconds, "one repetition in the fastest window"),
        field("median_seconds", &M::median_seconds, "one repetition in the median window"),
        field("relative_noise", &M::relative_noise, "1.4826 x median absolute deviation / median of the windows"),
        field("windows", &M::windows, "windows measured"),
        field("ended_by", &M::ended_by, "noise: the windows agreed; time: the time limit came first"),
        field("slowed", &M::slowed, "the second half was over 5 % slower than the first: throttled or disturbed"));
  }
};

// How tokens are spread over a layer's experts: the same number for each; or a number that rises from expert to expert,
// so that the last of E has 2·E / (E + 1) times the mean.
enum class ExpertLoad { even, uneven };

// What the products of several experts, one after the other, achieve beside one product of all their tokens. M:
// Measured, or a GPU's DeviceMeasured.
template <class M>
struct GroupedRate {
  std::string name;
  ProductPass pass = ProductPass::forward;
  ExpertLoad load = ExpertLoad::even;
  int64_t experts = 0, tokens = 0, fullest = 0, inputs = 0, outputs = 0;
  double flops_per_second = 0;
  double plain_flops_per_second = 0;
  double share_of_plain = 0;
  M measured;

  static constexpr auto fields() {
    using G = GroupedRate;
    return field_list(
        field("name", &G::name, "name of the products"),
        field("pass", &G::pass, "forward, or the gradient of the input (dgrad) or of the weights (wgrad)"),
        field("load", &G::load,
              "even: each expert has the same number of tokens; uneven: it rises from one to the next"),
        field("experts", &G::experts, "experts measured together"),
        field("tokens", &G::tokens, "tokens of an expert, on average"),
        field("fullest", &G::fullest, "tokens of the fullest expert"),
        field("inputs", &G::inputs, "inputs of an expert's layer"),
        field("outputs", &G::outputs, "outputs of an expert's layer"),
        field("flops_per_second", &G::flops_per_second, "2·tokens·inputs·outputs of all experts / time"),
        field("plain_flops_per_second", &G::plain_flops_per_second, "the same for one product of all these tokens"),
        field("share_of_plain", &G::share_of_plain, "flops_per_second / plain_flops_per_second"),
        field("measured", &G::measured, "the measurement"));
  }
};

struct GpuRate {
  std::string name;
  ProductPass pass = ProductPass::forward;
  int64_t m = 0, n = 0, k = 0;
  double flops_per_second = 0;
  DeviceMeasured measured;

  static constexpr auto fields() {
    using G = GpuRate;
    return field_list(
        field("name", &G::name, "name of the product"),
        field("pass", &G::pass, "forward, or the gradient of the input (dgrad) or of the weights (wgrad)"),
        field("m", &G::m, "rows of the left matrix and the result"),
        field("n", &G::n, "columns of the right matrix and the result"),
        field("k", &G::k, "columns of the left matrix, rows of the right one"),
        field("flops_per_second", &G::flops_per_second, "2·m·n·k per product, in the median window"),
        field("measured", &G::measured, "the measurement"));
  }
};

// How the GPU was while one number format was measured. What its library does not say is absent.
struct GpuConditions {
  std::optional<double> clock_hz, power_watts, temperature_celsius;

  static constexpr auto fields() {
    using G = GpuConditions;
    return field_list(field("clock_hz", &G::clock_hz, "mean clock"),
                      field("power_watts", &G::power_watts, "mean power"),
                      field("temperature_celsius", &G::temperature_celsius, "mean temperature"));
  }
};

struct GpuPeak {
  Precision precision = Precision::bf16;
  double flops_per_second = 0;                   // of the fastest product
  std::optional<double> catalogue_flops;         // dense peak of this part and format
  std::optional<double> model_flops_per_second;  // all of a model's products of a step together
  GpuConditions conditions;
  std::vector<GpuRate> products;
  std::optional<std::vector<GroupedRate<DeviceMeasured>>> grouped;  // of routed experts

  static constexpr auto fields() {
    using G = GpuPeak;
    return field_list(
        field("precision", &G::precision, "number format of the inputs"),
        field("flops_per_second", &G::flops_per_second, "of the fastest product"),
        field("catalogue_flops", &G::catalogue_flops, "dense peak from the hardware catalogue; absent: unknown"),
        field("model_flops_per_second", &G::model_flops_per_second,
              "aggregate rate of all products in a step of the "
              "model"),
        field("conditions", &G::conditions, "GPU state during the measurement"),
        field("products", &G::products, "rate of each product"),
        field("grouped", &G::grouped, "rate of the routed experts' products; absent: a dense model, or no kernels"));
  }
};

struct GpuTransferRate {
  std::string kind;  // "copy", "add": in the GPU's memory; "upload", "download": as a training's
  double bytes_per_second = 0;
  DeviceMeasured measured;

  static constexpr auto fields() {
    using G = GpuTransferRate;
    return field_list(
        field("kind", &G::kind,
              "copy: c = a; add: c = a + b, both in GPU memory; upload, download: between host and GPU memory, as in "
              "training"),
        field("bytes_per_second", &G::bytes_per_second, "read and written, in the median window"),
        field("measured", &G::measured, "the measurement"));
  }
};

// What each of many small operations costs.
struct GpuLaunch {
  double given_seconds = 0;     // of the host, for giving one to the GPU
  double done_seconds = 0;      // from one to the next on the GPU
  double recorded_seconds = 0;  // the same where the GPU was told once and repeats them

  static constexpr auto fields() {
    using G = GpuLaunch;
    return field_list(field("given_seconds", &G::given_seconds, "host time to launch one operation"),
                      field("done_seconds", &G::done_seconds, "GPU time from one operation to the next"),
                      field("recorded_seconds", &G::recorded_seconds, "the same for operations replayed from a graph"));
  }
};

struct GpuProbeReport {
  int64_t probe_version = k_probe_version;
  std::string gpu;                   // as the driver names it
  std::optional<std::string> part;   // of the hardware catalogue
  std::optional<std::string> model;  // whose products these are
  std::optional<int64_t> tokens;
  std::vector<GpuPeak> matmul;
  std::vector<Precision> no_kernels;
  std::optional<double> memory_bytes;  // that a training can have
  std::optional<double> catalogue_bandwidth;
  std::vector<GpuTransferRate> memory;
  std::optional<GpuLaunch> launch;

  static constexpr auto fields() {
    using G = GpuProbeReport;
    return field_list(
        field("probe_version", &G::probe_version, "format of this report"),
        field("gpu", &G::gpu, "name reported by its driver"), field("part", &G::part, "in the hardware catalogue"),
        field("model", &G::model, "model of these products; absent: generic shapes"),
        field("tokens", &G::tokens, "tokens of a micro-batch, MBS x SL"),
        field("matmul", &G::matmul, "achievable matrix-product rate by number format"),
        field("no_kernels", &G::no_kernels, "number formats without kernels on this GPU"),
        field("memory_bytes", &G::memory_bytes, "GPU memory that was free before the measurement"),
        field("catalogue_bandwidth", &G::catalogue_bandwidth, "memory bandwidth from the hardware catalogue, bytes/s"),
        field("memory", &G::memory, "achievable bandwidths"), field("launch", &G::launch, "cost of a small operation"));
  }
};

}  // namespace tprimat
