#include "planner/machine_from_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "planner/probe_curves.h"
#include "planner/spec_workload.h"
#include "result/gpu_probe_report.h"
#include "text/format.h"
#include "text/json_fields.h"
#include "text/words.h"

namespace tprimat::planner {
namespace {

constexpr const char* k_option = "--machine";
constexpr const char* k_repeat = "write it again with tprimat probe --json";

// The reports of one machine, by their kind.
struct ProbeReports {
  std::optional<ProbeReport> processor;
  std::vector<GpuProbeReport> gpus;
  std::optional<CollectiveReport> collectives;
  std::string path;  // of the last one, for messages
};

[[noreturn]] void refuse(const std::string& path, const std::string& what, const std::string& hint = k_repeat) {
  throw Error(Problem{what, path, hint});
}

void require_rate(const std::string& path, const std::string& of, double rate) {
  constexpr double k_min = 1, k_max = 1e21;
  if (!(rate >= k_min && rate < k_max)) refuse(path, fmt::format("holds no sound figure of {}", printable(of)));
}

void check_rates(const std::string& path, const ProbeReport& report) {
  for (const GemmPeak& each : report.matmul)
    require_rate(path, fmt::format("{} products", enum_name(each.precision)), each.flops_per_second);
  for (const MemoryRate& each : report.memory.kinds) require_rate(path, "memory bandwidth", each.bytes_per_second);
  if (report.memory_bytes) require_rate(path, "memory_bytes", *report.memory_bytes);
  constexpr int64_t k_max_threads = 1 << 20;
  if (report.threads < 1 || report.threads > k_max_threads) refuse(path, "holds no sound number of threads");
}

void check_rates(const std::string& path, const GpuProbeReport& report) {
  for (const GpuPeak& peak : report.matmul)
    for (const GpuRate& each : peak.products) {
      const std::string of = fmt::format("{} products", enum_name(peak.precision));
      for (const int64_t size : {each.m, each.n, each.k}) require_rate(path, of, static_cast<double>(size));
      require_rate(path, of, each.flops_per_second);
    }
  if (report.gpu.empty()) refuse(path, "names no GPU");
  for (const GpuTransferRate& each : report.memory) require_rate(path, each.kind, each.bytes_per_second);
  if (report.memory_bytes) require_rate(path, "memory_bytes", *report.memory_bytes);
}

void check_rates(const std::string& path, const CollectiveReport& report) {
  for (const CollectiveRate& each : report.rates) {
    const std::string of(enum_name(each.kind));
    require_rate(path, of, each.algorithm_bytes_per_second);
    require_rate(path, of, each.bus_bytes_per_second);
    require_rate(path, of, static_cast<double>(each.bytes));
  }
  if (report.ranks < 2) refuse(path, "holds no sound number of ranks");
}

template <class Report>
Report read_report(const Json& json, const std::string& path) {
  Report report = from_json<Report>(json, path);
  if (report.probe_version != k_probe_version)
    refuse(path,
           fmt::format("is a probe of version {}, but this program reads version {}", report.probe_version,
                       k_probe_version),
           "measure with the tprimat that plans");
  check_rates(path, report);
  return report;
}

void read_one(const ProbeFile& file, ProbeReports& reports) {
  const std::string& path = file.path;
  const Json json = parse_json(file.text, path);
  const auto has = [&](std::string_view key) { return json.is_object() && json.find(key) != nullptr; };
  reports.path = path;
  if (has("cpu") && has("models"))
    refuse(path, "holds the products of one model on a CPU, not the rates of the machine",
           "give the output of tprimat probe --json without --model");
  if (has("ranks") && has("rates")) {
    if (reports.collectives) refuse(path, "is a second report of collectives", "give only one");
    reports.collectives = read_report<CollectiveReport>(json, path);
  } else if (has("gpu") && has("matmul")) {
    reports.gpus.push_back(read_report<GpuProbeReport>(json, path));
  } else if (has("cpu") && has("matmul")) {
    if (reports.processor) refuse(path, "is a second report of a processor", "give only one");
    reports.processor = read_report<ProbeReport>(json, path);
  } else {
    refuse(path, "is not a report of tprimat probe --json", "give a file that tprimat probe --json wrote");
  }
}

ProbeReports read_reports(const std::vector<ProbeFile>& files) {
  ProbeReports reports;
  for (const ProbeFile& file : files) read_one(file, reports);
  if (reports.processor && !reports.gpus.empty())
    refuse(reports.path, "is of another kind of device than the report before it", "give reports of one machine");
  if (!reports.processor && reports.gpus.empty())
    refuse(reports.path, "holds only collectives",
           "add the report of the machine's products and memory: --machine probe.json,collectives.json");
  for (const GpuProbeReport& each : reports.gpus)
    if (each.gpu != reports.gpus.front().gpu)
      refuse(reports.path,
             fmt::format("is of {}, the report before it of {}", printable(each.gpu.substr(0, 64)),
                         printable(reports.gpus.front().gpu.substr(0, 64))),
             "give reports of one machine");
  return reports;
}

// "the bandwidth of its memory (...), the network between nodes (--network-gbps)"
void require_all(const std::string& path, const std::string& device, const std::vector<std::string>& missing) {
  if (missing.empty()) return;
  refuse(path, fmt::format("a plan for a cluster of {} needs {}", printable(device.substr(0, 64)), join(missing, ", ")),
         "state each with its option, or measure it");
}

std::vector<ProductPoint> points_of(const ProbeReports& reports, Precision precision) {
  std::vector<ProductPoint> points;
  for (const GpuProbeReport& report : reports.gpus)
    for (const GpuPeak& peak : report.matmul)
      for (const GpuRate& each : peak.products)
        if (peak.precision == precision)
          points.push_back({static_cast<double>(each.m), static_cast<double>(each.n), static_cast<double>(each.k),
                            each.flops_per_second});
  return points;
}

// The dimension at which products of a part with such a peak reach half of their rate, as calibrated.
double believed_saturation(const ParameterSet& parameters, double peak, double bandwidth) {
  constexpr double k_reference = 312e12 / 2.0e12;  // resolve_rates: an A100's FLOPs per byte
  return parameters.at("saturation") * peak / bandwidth / k_reference;
}

class GpuReader {
 public:
  GpuReader(const ProbeReports& reports, const StatedMachine& stated, const ParameterSet& parameters)
      : reports_(reports), parameters_(parameters) {
    probed_.stated = stated;
  }

  ProbedMachine read() {
    find_part();
    take_memory();
    take_products();
    take_links();
    const MeasuredRates& rates = machine_.measured;
    if (!rates.product_16 && !rates.product_8 && !rates.memory && !rates.link)
      refuse(reports_.path, "measured neither products nor memory");
    if (was_slowed()) note("some products slowed down while they were measured: a lower clock, or other load");
    if (!probed_.catalogue) complete_unknown();
    require_all(reports_.path, machine_.id, missing_);
    probed_.machine = machine_;
    return probed_;
  }

 private:
  const GpuProbeReport& first() const { return reports_.gpus.front(); }
  const StatedMachine& stated() const { return probed_.stated; }
  void note(std::string sentence) { probed_.notes.push_back(std::move(sentence)); }

  std::optional<double> measured_memory() const {
    for (const GpuProbeReport& each : reports_.gpus)
      if (each.memory_bytes) return each.memory_bytes;
    return std::nullopt;
  }

  void find_part() {
    const auto bytes = measured_memory();
    auto part = machine_of_device(first().gpu, bytes ? std::optional(*bytes / 1e9) : std::nullopt);
    if (!part) part = machine_of_device(first().part.value_or(first().gpu), std::nullopt);
    probed_.catalogue = part;
    machine_ = part.value_or(Machine{});
    if (!part) machine_.id = printable(first().gpu.substr(0, 64)), machine_.gpus_per_domain = 0;
    const bool is_busy = bytes && part && *bytes < k_idle_share * part->memory_bytes;
    if (is_busy)
      note(fmt::format(
          "only {} of the GPU's memory was free during the measurement: the plan uses the catalogue's memory, "
          "and the rates may be too low",
          format_gb(*bytes)));
    probed_.measures_memory = bytes && !is_busy;
    if (probed_.measures_memory) machine_.memory_bytes = *bytes;
    if (stated().memory_bytes) machine_.memory_bytes = *stated().memory_bytes;
  }

  bool was_slowed() const {
    for (const GpuProbeReport& report : reports_.gpus)
      for (const GpuPeak& peak : report.matmul)
        if (std::ranges::any_of(peak.products, [](const GpuRate& each) { return each.measured.slowed; })) return true;
    return false;
  }

  // What element-wise kernels reach: the mean time of a copied and an added byte.
  void take_memory() {
    double seconds = 0, count = 0;
    for (const GpuProbeReport& report : reports_.gpus)
      for (const GpuTransferRate& each : report.memory)
        if (each.kind == "copy" || each.kind == "add") seconds += 1 / each.bytes_per_second, ++count;
    if (count == 0) return;
    machine_.measured.memory = count / seconds;
    require_possible("memory bandwidth", *machine_.measured.memory, machine_.memory_bandwidth, "B/s");
    if (!probed_.catalogue) machine_.memory_bandwidth = *machine_.measured.memory;
  }

  void require_possible(const std::string& of, double measured, double most, const char* unit) const {
    constexpr double k_tolerance = 1.05;
    if (!probed_.catalogue || most <= 0 || measured <= k_tolerance * most) return;
    refuse(reports_.path, fmt::format("states {} of {}, but {} has at most {}", of, format_si(measured, unit),
                                      machine_.id, format_si(most, unit)));
  }

  std::optional<ProductCurve> curve_of(Precision precision, double peak) const {
    const std::vector<ProductPoint> points = points_of(reports_, precision);
    if (points.empty()) return std::nullopt;
    double fastest = 0;
    for (const ProductPoint& each : points) fastest = std::max(fastest, each.flops_per_second);
    require_possible(fmt::format("{} products", enum_name(precision)), fastest, peak, "FLOP/s");
    const bool knows_peak = probed_.catalogue && peak > 0;
    const double bandwidth = machine_.memory_bandwidth > 0 ? machine_.memory_bandwidth : fastest / k_usual_intensity;
    const double believed = believed_saturation(parameters_, knows_peak ? peak : fastest, bandwidth);
    return fit_product_curve(points, believed, knows_peak ? std::optional(peak) : std::nullopt);
  }

  void take_products() {
    auto half = machine_.has_bf16 || !probed_.catalogue ? curve_of(Precision::bf16, machine_.peak_16) : std::nullopt;
    if (!half) {
      half = curve_of(Precision::fp16, machine_.peak_16);
      if (half && !probed_.catalogue) machine_.has_bf16 = false;
    }
    if (half) machine_.measured.product_16 = half->flops_per_second, machine_.measured.saturation_16 = half->saturation;
    const auto low = curve_of(Precision::fp8, machine_.peak_8);
    const bool has_low = low && (machine_.peak_8 > 0 || !probed_.catalogue);
    if (has_low) machine_.measured.product_8 = low->flops_per_second, machine_.measured.saturation_8 = low->saturation;
    if (probed_.catalogue) return;
    machine_.peak_16 = half ? half->flops_per_second : 0;
    machine_.peak_8 = has_low ? low->flops_per_second : 0;
  }

  void take_links() {
    if (stated().devices_per_node) machine_.gpus_per_domain = *stated().devices_per_node;
    if (stated().network_bandwidth) machine_.network_bandwidth = *stated().network_bandwidth;
    if (stated().link_bandwidth) machine_.link_bandwidth = *stated().link_bandwidth;
    if (reports_.collectives && !stated().link_bandwidth) take_collectives(*reports_.collectives);
    if (!stated().network_bandwidth && probed_.catalogue)
      note(
          "a probe of one node does not measure the network between nodes: the plan uses the catalogue's figure, or "
          "--network-gbps");
  }

  void take_collectives(const CollectiveReport& report) {
    if (report.device && *report.device != first().gpu)
      refuse(reports_.path,
             fmt::format("holds collectives of {}, but the other report is of {}",
                         printable(report.device->substr(0, 64)), printable(first().gpu.substr(0, 64))),
             "give reports of one machine");
    if (machine_.gpus_per_domain == 0) machine_.gpus_per_domain = report.ranks;
    // Through a switch, all links of a GPU serve any of its peers.
    const bool is_switched = probed_.catalogue && machine_.mesh_links == 0 && machine_.pair_bandwidth == 0;
    if (report.ranks > machine_.gpus_per_domain || (report.ranks < machine_.gpus_per_domain && !is_switched))
      return note(
          fmt::format("the collectives were between {} GPUs, but fast links join {}: the plan uses the "
                      "catalogue's figures",
                      report.ranks, machine_.gpus_per_domain));
    if (report.ranks < machine_.gpus_per_domain)
      note(fmt::format("the collectives were between {} of the {} GPUs that the fast links join", report.ranks,
                       machine_.gpus_per_domain));
    double seconds = 0, count = 0;
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter})
      if (const auto bandwidth = fit_bus_bandwidth(report, kind)) seconds += 1 / *bandwidth, ++count;
    if (count > 0) machine_.measured.link = count / seconds;
    machine_.measured.all_to_all = fit_bus_bandwidth(report, CollectiveKind::all_to_all);
    if (!probed_.catalogue && count > 0) machine_.link_bandwidth = *machine_.measured.link;
  }

  // A GPU that the catalogue lacks has what was measured or stated, and the shares that are believed of all.
  void complete_unknown() {
    const auto require = [&](bool known, const char* what) {
      if (!known) missing_.emplace_back(what);
    };
    require(machine_.measured.product_16.has_value(), "16-bit products (tprimat probe --device nvd or amd)");
    require(machine_.measured.memory.has_value(), "the memory bandwidth (the same, without --model)");
    require(machine_.memory_bytes > 0, "the memory of a GPU (--memory-gb)");
    require(machine_.gpus_per_domain > 0, "the GPUs of a node (--gpus-per-node)");
    require(machine_.link_bandwidth > 0, "the links inside a node (tprimat probe --collectives, or --link-bandwidth)");
    require(machine_.network_bandwidth > 0, "the network between nodes (--network-gbps)");
    double share = 1;
    for (const PlanParameter& each : parameters_.all())
      if (each.name.starts_with("attention@")) share = std::min(share, each.prior);
    machine_.measured.attention = share * machine_.peak_16;
    note(fmt::format(
        "the catalogue lacks {}: MFU is relative to its measured rate, and attention is assumed to reach {} "
        "of that rate",
        machine_.id, format_percent(share, 0)));
  }

  static constexpr double k_idle_share = 0.9;
  static constexpr double k_usual_intensity = 300;  // FLOPs per byte, where the bandwidth is missing too

  const ProbeReports& reports_;
  const ParameterSet& parameters_;
  ProbedMachine probed_;
  Machine machine_;
  std::vector<std::string> missing_;
};

ProbedMachine read_processor(const ProbeReports& reports, const StatedMachine& stated) {
  ProbedMachine probed;
  probed.stated = stated;
  const ProbeReport& report = *reports.processor;
  auto facts = processor_facts(report);
  if (!facts || facts->peak_16 <= 0 || facts->memory_bandwidth <= 0)
    refuse(reports.path, "lacks the processor's products or the triad of its memory");
  facts->name = printable(facts->name.substr(0, 64));
  probed.measures_memory = report.memory_bytes.has_value();
  facts->memory_bytes = stated.memory_bytes.value_or(report.memory_bytes.value_or(0));
  require_all(reports.path, facts->name,
              facts->memory_bytes > 0 ? std::vector<std::string>{}
                                      : std::vector<std::string>{"the memory of a node (--memory-gb)"});
  probed.machine = processor_machine(*facts);
  for (const GemmPeak& each : report.matmul)
    if (each.cpu_share < k_undisturbed_share) {
      probed.notes.push_back(
          "other work disturbed the measurement: the rates are too low (measure on an idle machine)");
      break;
    }
  Machine& machine = probed.machine;
  if (stated.devices_per_node) machine.gpus_per_domain = *stated.devices_per_node;
  if (stated.network_bandwidth && stated.devices_per_node)
    machine.network_bandwidth = *stated.network_bandwidth / static_cast<double>(*stated.devices_per_node);
  if (!reports.collectives) return probed;
  if (reports.collectives->device && *reports.collectives->device != "cpu")
    refuse(reports.path, "holds collectives of GPUs, but the other report is of a processor",
           "give reports of one machine");
  if (reports.collectives->ranks > facts->threads)
    probed.notes.push_back(
        "the collectives had more ranks than cores: copies between ranks keep their calibrated rate");
  else
    machine.measured.link = fit_bus_bandwidth(*reports.collectives, CollectiveKind::all_gather);
  return probed;
}

}  // namespace

bool is_gpu_probe(const std::string& path) {
  try {
    ProbeReports reports;
    read_one({path, read_file(path)}, reports);
    return !reports.processor;
  } catch (const Error&) {
    return false;
  }
}

ProbedMachine read_probed_machine(const std::vector<std::string>& paths, const StatedMachine& stated,
                                  const ParameterSet& parameters) {
  if (paths.empty()) throw Error(Problem{"names no file", k_option, "give the output of tprimat probe --json"});
  std::vector<ProbeFile> files;
  for (const std::string& path : paths) files.push_back({path, read_file(path)});
  return parse_probed_machine(files, stated, parameters);
}

ProbedMachine parse_probed_machine(const std::vector<ProbeFile>& files, const StatedMachine& stated,
                                   const ParameterSet& parameters) {
  const ProbeReports reports = read_reports(files);
  if (reports.processor) return read_processor(reports, stated);
  return GpuReader(reports, stated, parameters).read();
}

}  // namespace tprimat::planner
