#include "planner/machine_from_probe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "planner/probe_curves.h"
#include "planner/step_time.h"
#include "planner_samples.h"
#include "result/collective_report.h"
#include "result/gpu_probe_report.h"
#include "text/json_fields.h"
#include "unit/temporary_folder.h"

namespace tprimat::planner {
namespace {

// The curve that the time model takes products for.
double rate_at(const ProductCurve& curve, double m, double n, double k) {
  return curve.flops_per_second / (1 + curve.saturation * (1 / m + 1 / n + 1 / k));
}

GpuPeak sample_peak(Precision precision, const ProductCurve& curve) {
  GpuPeak peak;
  peak.precision = precision;
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
           {4096, 4096, 4096}, {8192, 8192, 8192}, {8192, 28672, 4096}, {8192, 4096, 14336}}) {
    GpuRate rate;
    rate.m = m, rate.n = n, rate.k = k;
    rate.flops_per_second = rate_at(curve, static_cast<double>(m), static_cast<double>(n), static_cast<double>(k));
    peak.products.push_back(rate);
  }
  return peak;
}

// As `tprimat probe --device` writes them, of a made-up GPU.
GpuProbeReport sample_gpu(const std::string& gpu, double bf16, double bandwidth, double memory) {
  GpuProbeReport report;
  report.gpu = gpu;
  report.matmul = {sample_peak(Precision::bf16, {bf16, 400})};
  report.memory = {{"copy", bandwidth, {}}, {"add", bandwidth, {}}, {"upload", 2e10, {}}};
  report.memory_bytes = memory;
  return report;
}
GpuProbeReport sample_h100() {
  GpuProbeReport report = sample_gpu("NVIDIA H100 80GB HBM3", 780e12, 2.9e12, 84e9);
  report.matmul.push_back(sample_peak(Precision::fp8, {1400e12, 800}));
  return report;
}

CollectiveReport sample_collectives(const std::string& gpu, int64_t ranks, double bandwidth) {
  CollectiveReport report;
  report.ranks = ranks, report.device = gpu;
  const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                    CollectiveKind::reduce_scatter, CollectiveKind::all_to_all})
    for (const int64_t bytes : {int64_t{1} << 10, int64_t{4} << 20, int64_t{64} << 20, int64_t{1} << 30}) {
      const double factor = kind == CollectiveKind::all_reduce ? 2 * others : others;
      const double volume = factor * static_cast<double>(bytes);
      const double seconds = 30e-6 + volume / (kind == CollectiveKind::all_to_all ? bandwidth / 2 : bandwidth);
      report.rates.push_back({kind, bytes, static_cast<double>(bytes) / seconds, volume / seconds, {}});
    }
  return report;
}

std::string write(const std::string& name, const std::string& text) {
  static const test::TemporaryFolder folder;  // ctest runs each test in a process of its own, several at once
  const std::string path = folder / (name + ".json");
  std::ofstream(path) << text;
  return path;
}
template <class Report>
std::string write(const std::string& name, const Report& report) {
  return write(name, print_json(to_json(report)));
}

ProbedMachine read(const std::vector<std::string>& paths, const StatedMachine& stated = {}) {
  return read_probed_machine(paths, stated, built_in_parameters());
}
std::string why_not(const std::vector<std::string>& paths, const StatedMachine& stated = {}) {
  try {
    (void)read(paths, stated);
  } catch (const Error& error) {
    return error.problems().front().what;
  }
  return "";
}

TEST(ProbeCurves, FindTheRateOfLargeProductsAndWhereItIsHalved) {
  std::vector<ProductPoint> points;
  for (const double size : {512, 1024, 2048, 4096, 8192, 16384})
    points.push_back({size, size, size, rate_at({700e12, 500}, size, size, size)});
  const ProductCurve found = fit_product_curve(points, 300, std::nullopt);
  EXPECT_NEAR(found.flops_per_second / 700e12, 1, 0.02);
  EXPECT_NEAR(found.saturation / 500, 1, 0.05);
  // One point cannot tell: what is believed of the shape stays, and the point is met.
  const ProductCurve one = fit_product_curve({points.back()}, 300, std::nullopt);
  EXPECT_NEAR(one.saturation, 300, 5);
  EXPECT_NEAR(rate_at(one, 16384, 16384, 16384) / points.back().flops_per_second, 1, 1e-9);
  EXPECT_EQ(fit_product_curve(points, 300, 650e12).flops_per_second, 650e12) << "never above the peak";
}

TEST(ProbeCurves, TheStartOfACollectiveIsNotItsBandwidth) {
  const CollectiveReport report = sample_collectives("GPU", 8, 300e9);
  EXPECT_NEAR(*fit_bus_bandwidth(report, CollectiveKind::all_gather) / 300e9, 1, 1e-6);
  EXPECT_FALSE(fit_bus_bandwidth(report, CollectiveKind::send_receive));
}

TEST(MachineFromProbe, MeasuredFiguresStandInPlaceOfTheCatalogues) {
  const ProbedMachine probed =
      read({write("h100", sample_h100()), write("links", sample_collectives("NVIDIA H100 80GB HBM3", 8, 360e9))});
  const Machine &m = probed.machine, &part = *probed.catalogue;
  EXPECT_EQ(m.id, "H100-SXM-80GB");
  EXPECT_EQ(m.architecture, part.architecture);
  EXPECT_EQ(m.memory_bytes, 84e9);
  Workload w = sample_workload();
  const Rates rates = resolve_rates(built_in_parameters(), m, w);
  const Rates catalogued = resolve_rates(built_in_parameters(), part, w);
  EXPECT_NEAR(rates.product_16 / 780e12, 1, 0.03);
  EXPECT_NEAR(rates.saturation_16 / 400, 1, 0.1);
  EXPECT_NEAR(rates.memory, 2.9e12, 1);
  EXPECT_NEAR(rates.link / 360e9, 1, 1e-6);
  EXPECT_EQ(rates.attention, catalogued.attention) << "not measured";
  EXPECT_EQ(rates.network, catalogued.network) << "one node does not measure it";
  w.precision = PlanPrecision::fp8;
  EXPECT_NEAR(resolve_rates(built_in_parameters(), m, w).product_low / 1400e12, 1, 0.03);
  EXPECT_LT(seconds_of(sample_workload(), m), seconds_of(sample_workload(), part))
      << "the sample is faster than the part as calibrated";
}

TEST(MachineFromProbe, TheTableSaysWhereEachFigureComesFrom) {
  const ProbedMachine probed = read({write("h100", sample_h100())}, {.network_bandwidth = 25e9});
  std::map<std::string, MachineFigure> figures;
  for (const MachineFigure& each : machine_figures(probed, built_in_parameters(), sample_workload()))
    figures[each.figure] = each;
  EXPECT_EQ(figures.at("16-bit products").source, "measured");
  EXPECT_EQ(figures.at("16-bit products").used, *figures.at("16-bit products").measured);
  EXPECT_EQ(figures.at("attention").source, "catalogue, at the calibrated share");
  EXPECT_FALSE(figures.at("attention").measured);
  EXPECT_EQ(figures.at("sums and gathers inside a node").source, "catalogue, at the calibrated share");
  EXPECT_EQ(figures.at("network of a GPU").source, "option, at the calibrated share");
  EXPECT_LT(figures.at("network of a GPU").used, 25e9);
  EXPECT_EQ(figures.at("memory of a GPU").source, "measured");
}

TEST(MachineFromProbe, LinksOfAMeshAreThoseOfAllItsGpus) {
  const std::string gpu = "AMD Instinct MI300X";
  const std::string node = write("mi300x", sample_gpu(gpu, 600e12, 4e12, 205e9));
  const ProbedMachine four = read({node, write("four", sample_collectives(gpu, 4, 120e9))});
  EXPECT_FALSE(four.machine.measured.link) << "four GPUs of a mesh have three of a GPU's seven links";
  EXPECT_EQ(four.machine.link_bandwidth, find_machine("MI300X")->link_bandwidth);
  EXPECT_TRUE(read({node, write("eight", sample_collectives(gpu, 8, 300e9))}).machine.measured.link);
  const std::string h100 = write("h100", sample_h100());
  EXPECT_TRUE(
      read({h100, write("switch", sample_collectives("NVIDIA H100 80GB HBM3", 4, 350e9))}).machine.measured.link)
      << "through a switch any peers have all links";
}

TEST(MachineFromProbe, AnUnknownGpuNeedsEveryFigure) {
  const std::string node = write("unknown", sample_gpu("Acme X1000", 500e12, 2e12, 64e9));
  const std::string missing = why_not({node});
  for (const char* what : {"GPUs of a node (--gpus-per-node)", "--link-bandwidth", "--network-gbps"})
    EXPECT_NE(missing.find(what), std::string::npos) << missing;
  EXPECT_EQ(missing.find("--memory-gb"), std::string::npos) << missing;
  const StatedMachine stated{.network_bandwidth = 50e9, .link_bandwidth = 200e9, .devices_per_node = 8};
  const ProbedMachine probed = read({node}, stated);
  EXPECT_FALSE(probed.catalogue);
  EXPECT_EQ(probed.machine.id, "Acme X1000");
  const Rates rates = resolve_rates(built_in_parameters(), probed.machine, sample_workload());
  EXPECT_NEAR(rates.product_16 / 500e12, 1, 0.05);
  EXPECT_LT(rates.attention, rates.product_16);
  GpuProbeReport bare = sample_gpu("Acme X1000", 500e12, 2e12, 64e9);
  bare.memory.clear(), bare.memory_bytes.reset();
  EXPECT_NE(why_not({write("bare", bare)}, stated).find("--memory-gb"), std::string::npos);
}

TEST(MachineFromProbe, AProcessorsNodesShareTheirNetwork) {
  ProbeReport report;
  report.cpu = "Sample CPU", report.threads = 4, report.memory_bytes = 32e9;
  report.matmul = {{ProductFormat::fp32, 400e9, 1, "", {}}, {ProductFormat::bf16, 1600e9, 1, "", {}}};
  report.memory.kinds = {{StreamKernel::triad, 40e9, {}}};
  const std::string path = write("cpu", report);
  const Machine one = read({path}).machine;
  EXPECT_EQ(one.cores, 4);
  const Machine node = read({path}, {.network_bandwidth = 10e9, .devices_per_node = 2}).machine;
  EXPECT_EQ(node.gpus_per_domain, 2);
  EXPECT_EQ(node.network_bandwidth, 5e9);
  report.memory_bytes.reset();
  EXPECT_NE(why_not({write("no_memory", report)}).find("--memory-gb"), std::string::npos);
}

TEST(MachineFromProbe, RefusesWhatIsNoProbeOfThisVersion) {
  EXPECT_EQ(why_not({write("other", std::string(R"({"a": 1})"))}), "is not a report of tprimat probe --json");
  EXPECT_EQ(why_not({write("list", std::string("[1]"))}), "is not a report of tprimat probe --json");
  EXPECT_NE(why_not({write("damaged", std::string(R"({"gpu": )"))}), "");
  GpuProbeReport newer = sample_h100();
  newer.probe_version = 2;
  EXPECT_EQ(why_not({write("newer", newer)}), "is a probe of version 2, but this program reads version 1");
  const auto with = [](auto change) {
    GpuProbeReport report = sample_h100();
    change(report);
    return why_not({write("changed", report)});
  };
  for (const double rate : {0.0, -1e12, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_EQ(with([&](GpuProbeReport& r) { r.matmul[0].products[0].flops_per_second = rate; }),
              "holds no sound figure of bf16 products");
  EXPECT_EQ(with([](GpuProbeReport& r) { r.matmul[0].products[0].k = 0; }), "holds no sound figure of bf16 products");
  EXPECT_NE(with([](GpuProbeReport& r) { r.matmul[0].products[0].flops_per_second = 2e15; }).find("at most"),
            std::string::npos);
  EXPECT_EQ(why_not({write("alone", sample_collectives("GPU", 8, 3e11))}), "holds only collectives");
  EXPECT_NE(why_not({write("h100", sample_h100()), write("of_others", sample_collectives("AMD MI300X", 8, 3e11))})
                .find("the other report is of"),
            std::string::npos);
}

// Two nodes of a processor: what crosses the network takes its time.
TEST(OwnTrainersNodes, WaitForTheNetwork) {
  ProcessorFacts facts;
  facts.name = "Sample CPU", facts.threads = 2, facts.peak_16 = 800e9, facts.peak_32 = 200e9;
  facts.memory_bandwidth = 20e9, facts.memory_bytes = 32e9;
  Machine node = processor_machine(facts);
  Workload w = sample_workload();
  w.shape.num_layers = 2, w.shape.hidden_size = 512, w.shape.ffn_hidden_size = 1024, w.shape.num_attention_heads = 8;
  w.shape.num_key_value_heads = 8, w.shape.head_dim = 64, w.shape.vocab_size = 4096;
  w.sequence_length = 256, w.global_batch = 8, w.layout = {};
  w.layout.sequence_parallel = false, w.layout.data = 4;
  w.family = find_family("native");
  const auto seconds = [&](double network) {
    node.gpus_per_domain = 2, node.network_bandwidth = network;
    return seconds_of(w, node);
  };
  EXPECT_GT(seconds(1e8), 1.1 * seconds(1e10));
  EXPECT_GT(seconds_of(w, processor_machine(facts)), seconds(1e12)) << "two nodes have twice the cores";
}

}  // namespace
}  // namespace tprimat::planner
