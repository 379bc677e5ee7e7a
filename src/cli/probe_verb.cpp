#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "cli/verbs.h"
#include "probe/probes.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat {
namespace {

constexpr const char* k_examples =
    "  tprimat probe\n"
    "  tprimat probe --threads 1 --json\n";

std::string render_report(const ProbeReport& report) {
  TextTable table{{"probe", "shape (m x n x k)", "rate"}, {}, {2}};
  for (const GemmPeak& peak : report.matmul) {
    for (const GemmRate& shape : peak.shapes)
      table.rows.push_back({fmt::format("{} matmul", enum_name(peak.precision)),
                            fmt::format("{} x {} x {}", shape.m, shape.n, shape.k),
                            format_si(shape.flops_per_second, "FLOP/s")});
    table.rows.push_back(
        {fmt::format("{} matmul peak", enum_name(peak.precision)), "", format_si(peak.flops_per_second, "FLOP/s")});
  }
  table.rows.push_back({"memory read", "", format_si(report.memory.read_bytes_per_second, "B/s")});
  table.rows.push_back({"memory triad", "", format_si(report.memory.triad_bytes_per_second, "B/s")});
  std::string text = fmt::format("{}, {} threads\n\n{}\n", report.cpu, report.threads, render_text(table));
  for (const GemmPeak& peak : report.matmul)
    text += fmt::format("{} matmul: {}\n", enum_name(peak.precision), peak.how);
  return text + fmt::format("memory: {}\n", report.memory.how);
}

// A figure that others disturbed is printed, but not silently.
void warn_of_disturbance(const ProbeReport& report) {
  for (const GemmPeak& peak : report.matmul)
    if (peak.cpu_share < 0.95)
      log_warning(
          fmt::format("{} matmul: other processes took {} of the CPU time, so the machine can do more than this figure",
                      enum_name(peak.precision), format_percent(1 - peak.cpu_share)));
}

ExitStatus probe(const Session& session, int threads) {
  log_note("measuring for about 8 seconds; other work on this machine lowers the figures");
  const ProbeReport report = run_cpu_probes(threads);
  warn_of_disturbance(report);
  print_result(session.json ? print_json(to_json(report)) : render_report(report));
  return ExitStatus::done;
}

}  // namespace

void add_probe_verb(CLI::App& program, Session& session) {
  CLI::App* verb = add_verb(program, session, "probe",
                            "Measure what this CPU achieves: matrix products and memory bandwidth", k_examples);
  add_json_option(*verb, session);
  auto threads = std::make_shared<int>(0);
  verb->add_option("--threads", *threads, "CPU threads (default: all that this process may use)")
      ->check(CLI::Range(0, 4096));
  verb->callback([&session, threads] { session.action = [&session, threads] { return probe(session, *threads); }; });
}

}  // namespace tprimat
