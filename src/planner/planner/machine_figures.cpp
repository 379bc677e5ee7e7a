#include <fmt/format.h>

#include "planner/machine_from_probe.h"
#include "text/format.h"

namespace tprimat::planner {
namespace {

class FigureList {
 public:
  FigureList(const ProbedMachine& probed, const ParameterSet& parameters) : probed_(probed), parameters_(parameters) {}

  // A rate that results of this machine, the probe or the calibrated share of the catalogue's figure give.
  struct Rate {
    const char *figure, *unit, *key;
    double used = 0;
    std::optional<double> measured, catalogue;
    std::optional<double> stated = {};
  };
  void add_rate(const Rate& rate) {
    const bool is_own = parameters_.find_own(rate.key, probed_.machine) != nullptr;
    const char* source = is_own              ? "fitted to own results"
                         : rate.stated       ? "option, at the calibrated share"
                         : rate.measured     ? "measured"
                         : probed_.catalogue ? "catalogue, at the calibrated share"
                                             : "assumed";
    add({rate.figure, rate.unit, rate.used, rate.measured, rate.catalogue, source});
  }

  // One that is taken as it stands.
  void add_plain(MachineFigure figure, bool is_stated) {
    figure.source = is_stated ? "option" : figure.measured ? "measured" : "catalogue";
    add(std::move(figure));
  }

  void add(MachineFigure figure) { figures_.push_back(std::move(figure)); }
  std::vector<MachineFigure> take() { return std::move(figures_); }

 private:
  const ProbedMachine& probed_;
  const ParameterSet& parameters_;
  std::vector<MachineFigure> figures_;
};

template <class Value>
std::optional<double> rate_of(const std::optional<Rates>& rates, Value Rates::*member) {
  return rates ? std::optional<double>((*rates).*member) : std::nullopt;
}

std::vector<MachineFigure> processor_figures(const ProbedMachine& probed, const ParameterSet& parameters) {
  const Machine& m = probed.machine;
  FigureList list(probed, parameters);
  if (m.peak_16 > 0) list.add_plain({"16-bit products", "FLOP/s", m.peak_16, m.peak_16, {}, ""}, false);
  if (m.peak_32 > 0) list.add_plain({"fp32 products", "FLOP/s", m.peak_32, m.peak_32, {}, ""}, false);
  list.add_plain({"memory bandwidth", "B/s", m.memory_bandwidth, m.memory_bandwidth, {}, ""}, false);
  if (m.measured.link)
    list.add_plain({"copies between ranks", "B/s", *m.measured.link, m.measured.link, {}, ""}, false);
  const bool has_memory = probed.measures_memory && !probed.stated.memory_bytes;
  const auto measured = has_memory ? std::optional(m.memory_bytes) : std::nullopt;
  list.add_plain({"memory of a node", "B", m.memory_bytes, measured, {}, ""}, !has_memory);
  if (const auto ranks = probed.stated.devices_per_node)
    list.add_plain({"ranks per node", "", static_cast<double>(*ranks), {}, {}, ""}, true);
  if (const auto network = probed.stated.network_bandwidth)
    list.add_plain({"network of a node", "B/s", *network, {}, {}, ""}, true);
  return list.take();
}

}  // namespace

std::vector<MachineFigure> machine_figures(const ProbedMachine& probed, const ParameterSet& parameters,
                                           const Workload& workload) {
  const Machine& m = probed.machine;
  if (m.cores > 0) return processor_figures(probed, parameters);
  const Rates used = resolve_rates(parameters, m, workload);
  std::optional<Rates> catalogue;
  if (probed.catalogue) catalogue = resolve_rates(parameters, *probed.catalogue, workload);
  const auto of_part = [&](double Machine::*member) {
    return probed.catalogue ? std::optional((*probed.catalogue).*member) : std::nullopt;
  };
  FigureList list(probed, parameters);
  list.add_rate({"16-bit products", "FLOP/s", "product_16", used.product_16, m.measured.product_16,
                 rate_of(catalogue, &Rates::product_16)});
  list.add_rate({"half of that rate at a dimension of", "", "", used.saturation_16, m.measured.saturation_16,
                 rate_of(catalogue, &Rates::saturation_16)});
  if (workload.precision == PlanPrecision::fp8)
    list.add_rate({"fp8 products", "FLOP/s", "product_8", used.product_low, m.measured.product_8,
                   rate_of(catalogue, &Rates::product_low)});
  if (workload.precision == PlanPrecision::fp4)
    list.add_rate(
        {"fp4 products", "FLOP/s", "product_4", used.product_low, {}, rate_of(catalogue, &Rates::product_low)});
  list.add_rate({"attention", "FLOP/s", "attention", used.attention, {}, rate_of(catalogue, &Rates::attention)});
  list.add_rate(
      {"memory bandwidth", "B/s", "memory", used.memory, m.measured.memory, rate_of(catalogue, &Rates::memory)});
  list.add_rate({"sums and gathers inside a node", "B/s", "link", used.link, m.measured.link,
                 rate_of(catalogue, &Rates::link), probed.stated.link_bandwidth});
  if (m.measured.all_to_all)
    list.add_rate({"all-to-all inside a node", "B/s", "all_to_all", *m.measured.all_to_all, m.measured.all_to_all, {}});
  list.add_rate({"network of a GPU",
                 "B/s",
                 "network",
                 used.network,
                 {},
                 rate_of(catalogue, &Rates::network),
                 probed.stated.network_bandwidth});
  const bool has_memory = probed.measures_memory && !probed.stated.memory_bytes;
  list.add_plain({"memory of a GPU", "B", m.memory_bytes, has_memory ? std::optional(m.memory_bytes) : std::nullopt,
                  of_part(&Machine::memory_bytes), ""},
                 probed.stated.memory_bytes.has_value());
  return list.take();
}

std::string render_machine_figures(const std::vector<MachineFigure>& figures) {
  TextTable table{{"figure", "used", "measured", "catalogue", "source"}, {}, {1, 2, 3}};
  for (const MachineFigure& each : figures) {
    const auto cell = [&](const std::optional<double>& value) {
      if (!value) return std::string();
      return each.unit.empty() ? format_significant(*value, 3) : format_si(*value, each.unit);
    };
    table.rows.push_back({each.figure, cell(each.used), cell(each.measured), cell(each.catalogue), each.source});
  }
  return render_text(table);
}

}  // namespace tprimat::planner
