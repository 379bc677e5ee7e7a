#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/parameters.h"
#include "text/fields.h"

namespace tprimat::planner {

// What options state beside a probe, or in place of what it measured.
struct StatedMachine {
  std::optional<double> network_bandwidth;    // bytes/s per GPU and direction between nodes; of processors: per node
  std::optional<double> link_bandwidth = {};  // bytes/s per GPU and direction inside a node
  std::optional<double> memory_bytes;         // of a GPU; of processors: of the node
  std::optional<int64_t> devices_per_node;    // of processors: ranks per node
};

// A node that `tprimat probe --json` measured, for a cluster of nodes like it.
struct ProbedMachine {
  Machine machine;
  std::optional<Machine> catalogue;  // the GPU as catalogued; absent: an unknown GPU, or a processor
  StatedMachine stated;
  std::vector<std::string> notes;  // what the probe leaves open, as sentences
  bool measures_memory = false;    // how much there is

  // Of the machine's memory; empty: the catalogue.
  std::string memory_source() const { return stated.memory_bytes ? "--memory-gb" : measures_memory ? "the probe" : ""; }
};

// `paths`: reports of one machine, such as its products and memory, and its collectives. `parameters` tell what is
// believed of the shape of its products' rates. Throws Error for a file that is no such report, and for a machine of
// which a figure is missing.
ProbedMachine read_probed_machine(const std::vector<std::string>& paths, const StatedMachine& stated,
                                  const ParameterSet& parameters);

// The same of the files' texts.
struct ProbeFile {
  std::string path, text;
};
ProbedMachine parse_probed_machine(const std::vector<ProbeFile>& files, const StatedMachine& stated,
                                   const ParameterSet& parameters);

// Whether the file holds what `tprimat probe --json` says of a GPU or of collectives. Never throws.
bool is_gpu_probe(const std::string& path);

// One figure of a machine as a plan uses it.
struct MachineFigure {
  std::string figure, unit;
  double used = 0;
  std::optional<double> measured, catalogue;
  std::string source;

  static constexpr auto fields() {
    using M = MachineFigure;
    return field_list(field("figure", &M::figure, "what it is of"), field("unit", &M::unit, "empty: a number"),
                      field("used", &M::used, "by the plan"), field("measured", &M::measured, "by the probe"),
                      field("catalogue", &M::catalogue, "what a plan for the part as catalogued uses"),
                      field("source", &M::source, "where the used figure comes from"));
  }
};
std::vector<MachineFigure> machine_figures(const ProbedMachine& probed, const ParameterSet& parameters,
                                           const Workload& workload);
std::string render_machine_figures(const std::vector<MachineFigure>& figures);

}  // namespace tprimat::planner
