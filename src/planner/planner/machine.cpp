#include "planner/machine.h"

#include "base/check.h"
#include "spec/hardware_catalogue.h"
#include "spec/tsv_rows.h"

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

// "no_bf16 fp16=125 memory=32": what the catalogue does not hold, or what this machine has otherwise.
void take_own_facts(Machine& machine, std::string_view text) {
  for (const std::string& word : split_words(text, ' ')) {
    if (word == "no_bf16") {
      machine.has_bf16 = false;
      continue;
    }
    const size_t equals = word.find('=');
    CHECK(equals != std::string::npos);
    const std::string key = word.substr(0, equals);
    const double value = parse_figure(word.substr(equals + 1));
    if (key == "fp16")
      machine.peak_16 = value * k_tera;
    else if (key == "fp8")
      machine.peak_8 = value * k_tera;
    else if (key == "fp4")
      machine.peak_4 = value * k_tera;
    else if (key == "memory")
      machine.memory_bytes = value * k_giga;
    else if (key == "bandwidth")
      machine.memory_bandwidth = value * k_giga;
    else
      CHECK(false);
  }
}

struct NamedMachine {
  Machine machine;
  std::vector<std::string> words;  // folded
};

NamedMachine parse_machine(const TsvRow& row) {
  NamedMachine named;
  Machine& machine = named.machine;
  machine.id = row.at("id");
  machine.architecture = row.at("architecture");
  take_part(machine, row.at("part"));
  take_own_facts(machine, row.at("facts"));
  machine.link_bandwidth = parse_figure(row.at("link")) * k_giga;
  machine.network_bandwidth = parse_figure(row.at("network")) * k_giga;
  machine.gpus_per_domain = static_cast<int64_t>(parse_figure(row.at("domain")));
  CHECK(machine.peak_16 > 0 && machine.memory_bytes > 0 && machine.memory_bandwidth > 0);
  for (const std::string& word : split_words(row.at("words"), '|')) named.words.push_back(fold_name(word));
  named.words.push_back(fold_name(machine.id));
  return named;
}

const std::vector<NamedMachine>& named_machines() {
  static const std::vector<NamedMachine> loaded = [] {
    std::vector<NamedMachine> all;
    for (const TsvRow& row : parse_tsv_rows(embedded::machines_tsv)) all.push_back(parse_machine(row));
    return all;
  }();
  return loaded;
}

}  // namespace

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

const std::vector<Machine>& machines() {
  static const std::vector<Machine> all = [] {
    std::vector<Machine> list;
    for (const NamedMachine& named : named_machines()) list.push_back(named.machine);
    return list;
  }();
  return all;
}

std::optional<Machine> find_machine(std::string_view name) {
  const std::string folded = fold_name(name.substr(0, 200));
  for (const NamedMachine& named : named_machines())
    for (const std::string& word : named.words)
      if (word == folded) return named.machine;
  return std::nullopt;
}

std::optional<Machine> find_printed_machine(std::string_view name) {
  const std::string folded = fold_name(name.substr(0, 200));
  for (const std::string_view other : {"pcie", "nvl", "gh200"})
    if (folded.find(other) != std::string::npos) return std::nullopt;
  const Machine* best = nullptr;
  size_t longest = 0;
  for (const NamedMachine& named : named_machines())
    for (const std::string& word : named.words)
      if (word.size() > longest && folded.find(word) != std::string::npos) best = &named.machine, longest = word.size();
  if (best == nullptr) return std::nullopt;
  return *best;
}

}  // namespace tprimat::planner
