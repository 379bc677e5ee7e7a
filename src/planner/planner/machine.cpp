#include "planner/machine.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/check.h"
#include "planner/worded_rows.h"
#include "published/cells.h"
#include "spec/hardware_catalogue.h"

namespace tprimat::planner {
namespace embedded {
extern const std::string_view machines_tsv;
}

namespace {

constexpr double k_giga = 1e9;
constexpr double k_tera = 1e12;

double peak_of(const HardwareSpec& part, Precision precision) {
  const auto found = part.dense_peak_flops.find(precision);
  return found == part.dense_peak_flops.end() ? 0 : found->second;
}

// Facts of the catalogue's part, where there is one.
void take_part(Machine& machine, std::string_view id) {
  if (id == "-") return;
  const auto part = find_hardware(id);
  CHECK(part.has_value());
  machine.peak_16 = peak_of(*part, Precision::bf16);
  machine.peak_8 = peak_of(*part, Precision::fp8);
  machine.memory_bytes = part->memory_bytes.value_or(0);
  machine.memory_bandwidth = part->memory_bandwidth.value_or(0);
}

// What the catalogue does not hold, or what this machine has otherwise: "no_bf16 fp16=125 memory=32".
struct OwnFact {
  std::string_view key;
  double Machine::*member;
  double unit;
};
constexpr OwnFact k_own_facts[] = {{"fp16", &Machine::peak_16, k_tera},
                                   {"fp8", &Machine::peak_8, k_tera},
                                   {"fp4", &Machine::peak_4, k_tera},
                                   {"memory", &Machine::memory_bytes, k_giga},
                                   {"bandwidth", &Machine::memory_bandwidth, k_giga},
                                   {"pair", &Machine::pair_bandwidth, k_giga}};

void take_own_facts(Machine& machine, std::string_view text) {
  for (const std::string& word : split_words(text, ' ')) {
    const auto [key, value] = split_setting(word);
    if (key == "no_bf16") {
      machine.has_bf16 = false;
      continue;
    }
    if (key == "mesh") {
      machine.mesh_links = static_cast<int64_t>(parse_figure(value));
      continue;
    }
    const auto* fact = std::ranges::find(k_own_facts, key, &OwnFact::key);
    CHECK(fact != std::end(k_own_facts));
    machine.*fact->member = parse_figure(value) * fact->unit;
  }
}

Machine parse_machine(const TsvRow& row) {
  Machine machine;
  machine.id = row.at("id");
  machine.architecture = row.at("architecture");
  take_part(machine, row.at("part"));
  take_own_facts(machine, row.at("facts"));
  machine.link_bandwidth = parse_figure(row.at("link")) * k_giga;
  machine.network_bandwidth = parse_figure(row.at("network")) * k_giga;
  machine.gpus_per_domain = static_cast<int64_t>(parse_figure(row.at("domain")));
  CHECK(machine.peak_16 > 0 && machine.memory_bytes > 0 && machine.memory_bandwidth > 0);
  return machine;
}

// Words that name another part than the one whose name is the rest, unless a row is of that part.
constexpr std::string_view k_variants[] = {"pcie", "nvl", "gh200", "2gcd"};

const WordedRows<Machine>& loaded_machines() {
  static const WordedRows<Machine> loaded(embedded::machines_tsv, parse_machine);
  return loaded;
}

}  // namespace

Machine processor_machine(const ProcessorFacts& facts) {
  Machine machine;
  machine.id = facts.name.empty() ? "cpu" : facts.name;
  machine.architecture = "cpu";
  machine.peak_16 = facts.peak_16, machine.peak_32 = facts.peak_32, machine.widens = facts.widens;
  machine.memory_bytes = facts.memory_bytes;
  machine.memory_bandwidth = facts.memory_bandwidth;
  machine.cores = facts.threads;
  machine.gpus_per_domain = std::numeric_limits<int64_t>::max();
  return machine;
}

std::optional<ProcessorFacts> processor_facts(const ProbeReport& report) {
  if (report.cpu.empty() || report.matmul.empty()) return std::nullopt;
  const auto peak = [&](ProductFormat format) {
    const GemmPeak* measured = report.find_peak(format);
    return measured == nullptr ? 0 : measured->flops_per_second;
  };
  ProcessorFacts facts;
  facts.name = report.cpu, facts.threads = report.threads;
  facts.peak_16 = peak(ProductFormat::bf16), facts.peak_32 = peak(ProductFormat::fp32);
  facts.widens = facts.peak_16 == 0;
  if (facts.widens) facts.peak_16 = facts.peak_32;
  facts.memory_bandwidth = report.memory.rate(StreamKernel::triad).value_or(0);
  return facts;
}

double Machine::peak(PlanPrecision precision) const {
  switch (precision) {
    case PlanPrecision::fp8: return peak_8;
    case PlanPrecision::fp4: return peak_4;
    case PlanPrecision::fp32: return peak_32;
    case PlanPrecision::bf16: return has_bf16 ? peak_16 : 0;
    case PlanPrecision::fp16: break;
  }
  return peak_16;
}

double Machine::link_bandwidth_among(int64_t ranks) const {
  if (ranks == 2 && pair_bandwidth > 0) return pair_bandwidth;
  if (mesh_links == 0) return link_bandwidth;
  const int64_t used = std::clamp<int64_t>(ranks - 1, 1, mesh_links);
  return link_bandwidth * static_cast<double>(used) / static_cast<double>(mesh_links);
}

const std::vector<Machine>& machines() { return loaded_machines().rows(); }

const Machine* find_machine(std::string_view name) { return loaded_machines().find(name); }

const Machine* find_printed_machine(std::string_view name) {
  const std::string folded = fold_gpu_name(name);
  const Machine* found = loaded_machines().find_printed(name, [](const Machine&) { return true; });
  if (found == nullptr) return nullptr;
  for (const std::string_view variant : k_variants)
    if (folded.find(variant) != std::string::npos && fold_name(found->id).find(variant) == std::string::npos)
      return nullptr;
  return found;
}

}  // namespace tprimat::planner
