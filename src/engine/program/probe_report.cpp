#include "program/probe_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "text/format.h"

namespace tprimat::engine {
namespace {

std::string format_rate(double flops_per_second, ProductFormat format) {
  return format_si(flops_per_second, format == ProductFormat::int8 ? "OP/s" : "FLOP/s");
}

// "0.4 %"; with a mark where the windows did not agree before the time was over.
template <class M>
std::string format_noise(const M& measured) {
  return format_percent(measured.relative_noise) + (measured.ended_by == EndedBy::time ? " *" : "  ");
}

// Windows agree to 1 %. No product is faster than the processor.
bool is_above(double rate, double peak) { return rate > 1.01 * peak; }

constexpr const char* k_above =
    "** above the measured peak: the peak or the plain product was disturbed; repeat on an idle machine\n";

std::string mark_above(double rate, const std::optional<double>& peak) {
  return peak && is_above(rate, *peak) ? " **" : "";
}

void add_products(TextTable& table, const GemmPeak& products, double peak) {
  for (const GemmRate& shape : products.shapes)
    table.rows.push_back(
        {fmt::format("{} matmul", enum_name(products.precision)), shape.name, std::string(enum_name(shape.pass)),
         fmt::format("{} x {} x {}", shape.m, shape.n, shape.k),
         format_rate(shape.flops_per_second, products.precision) + mark_above(shape.flops_per_second, peak),
         format_percent(shape.flops_per_second / peak), format_noise(shape.measured)});
}

TextTable product_table() {
  return {{"probe", "product", "pass", "m x n x k", "rate", "of peak", "noise"}, {}, {4, 5, 6}};
}

constexpr const char* k_grouped_columns[] = {
    "probe", "products", "pass", "load", "experts", "tokens each, most", "inputs x outputs",
    "rate",  "of plain", "noise"};

// On GPUs the peak is that of the model's own products, which a group may exceed: no peak then.
template <class M>
void add_groups(TextTable& table, std::string_view precision, const std::vector<GroupedRate<M>>& rates,
                const std::optional<double>& peak = {}) {
  for (const GroupedRate<M>& rate : rates)
    table.rows.push_back({fmt::format("{} matmul", precision), rate.name, std::string(enum_name(rate.pass)),
                          std::string(enum_name(rate.load)), std::to_string(rate.experts),
                          fmt::format("{}, {}", rate.tokens, rate.fullest),
                          fmt::format("{} x {}", rate.inputs, rate.outputs),
                          format_si(rate.flops_per_second, "FLOP/s") + mark_above(rate.flops_per_second, peak),
                          format_percent(rate.share_of_plain), format_noise(rate.measured)});
}

// Whether a table has a marked rate.
bool has_rate_above(const ModelProbeReport& report) {
  for (size_t i = 0; i < report.models.size(); ++i) {
    const auto above = [&, peak = report.matmul[i].flops_per_second](const auto& rate) {
      return is_above(rate.flops_per_second, peak);
    };
    const ModelRate& model = report.models[i];
    if (std::ranges::any_of(model.products.shapes, above)) return true;
    if (model.grouped && std::ranges::any_of(*model.grouped, above)) return true;
  }
  return false;
}

// Of routed experts; `add` fills the table.
std::string render_groups(const auto& add) {
  TextTable table{{std::begin(k_grouped_columns), std::end(k_grouped_columns)}, {}, {4, 5, 7, 8, 9}};
  add(table);
  if (table.rows.empty()) return "";
  return fmt::format(
      "{}\nproducts of routed experts: one for each expert, one after the other; of plain: beside one product of all "
      "their tokens\n\n",
      render_text(table));
}

std::string explain_noise() {
  return "noise: scaled median deviation of the windows; * the time limit was reached before they agreed\n";
}

std::string render_memory(const MemoryBandwidth& memory) {
  TextTable table{{"probe", "kind", "rate", "noise"}, {}, {2, 3}};
  for (const MemoryRate& rate : memory.kinds)
    table.rows.push_back({"memory", std::string(enum_name(rate.kind)), format_si(rate.bytes_per_second, "B/s"),
                          format_noise(rate.measured)});
  return render_text(table);
}

std::string describe_rules(const std::vector<GemmPeak>& peaks) {
  std::string text;
  for (const GemmPeak& peak : peaks)
    text += fmt::format("{} matmul peak {}: {}\n", enum_name(peak.precision),
                        format_rate(peak.flops_per_second, peak.precision), peak.how);
  return text;
}

// Names of figures that a disturbance touched, told in one sentence.
class Touched {
 public:
  void add(bool is_touched, const std::string& name) {
    if (is_touched && count_++ < k_named) names_ += (names_.empty() ? "" : ", ") + name;
  }
  void tell(std::vector<std::string>& list, const std::string& what) const {
    if (count_ == 0) return;
    const std::string rest = count_ > k_named ? fmt::format(" and {} more", count_ - k_named) : "";
    list.push_back(fmt::format("{}: {}{}", what, names_, rest));
  }

 private:
  static constexpr int k_named = 3;
  int count_ = 0;
  std::string names_;
};

constexpr const char* k_slowed = "over 5 % slower in the second half of the measurement (a lower clock or other load)";
constexpr const char* k_waited = "a rank had no processor for over 5 % of the time";

std::string name_of(const GemmPeak& peak, const GemmRate& shape) {
  return fmt::format("{} {} {} x {} x {}", enum_name(peak.precision), enum_name(shape.pass), shape.m, shape.n, shape.k);
}

void add_slowed(Touched& slowed, const std::vector<GemmPeak>& peaks) {
  for (const GemmPeak& peak : peaks)
    for (const GemmRate& shape : peak.shapes) slowed.add(shape.measured.slowed, name_of(peak, shape));
}

template <class M>
void add_slowed_groups(Touched& slowed, std::string_view precision, const std::vector<GroupedRate<M>>& rates) {
  for (const GroupedRate<M>& rate : rates)
    slowed.add(rate.measured.slowed, fmt::format("{} {} {} of {} experts, {}", precision, rate.name,
                                                 enum_name(rate.pass), rate.experts, enum_name(rate.load)));
}

std::vector<std::string> list_taken(const std::vector<GemmPeak>& peaks) {
  std::vector<std::string> list;
  for (const GemmPeak& peak : peaks)
    if (peak.cpu_share < k_undisturbed_share)
      list.push_back(fmt::format("{} matmul: other processes took {} of the CPU time, so the real peak is higher",
                                 enum_name(peak.precision), format_percent(1 - peak.cpu_share)));
  return list;
}

std::string format_bytes(int64_t bytes) {
  if (bytes >= 1 << 20) return fmt::format("{:.4g} MiB", static_cast<double>(bytes) / (1 << 20));
  return fmt::format("{:.4g} KiB", static_cast<double>(bytes) / (1 << 10));
}

std::string share_or_blank(double part, const std::optional<double>& whole) {
  return whole ? format_percent(part / *whole) : "";
}

std::string render_products(const GpuProbeReport& report) {
  TextTable table{{"probe", "product", "pass", "m x n x k", "rate", "of catalogue", "noise"}, {}, {4, 5, 6}};
  for (const GpuPeak& peak : report.matmul)
    for (const GpuRate& rate : peak.products)
      table.rows.push_back({fmt::format("{} matmul", enum_name(peak.precision)), rate.name,
                            std::string(enum_name(rate.pass)), fmt::format("{} x {} x {}", rate.m, rate.n, rate.k),
                            format_si(rate.flops_per_second, "FLOP/s"),
                            share_or_blank(rate.flops_per_second, peak.catalogue_flops), format_noise(rate.measured)});
  for (const Precision precision : report.no_kernels)
    table.rows.push_back({fmt::format("{} matmul", enum_name(precision)), "no kernels", "", "", "", "", ""});
  return render_text(table);
}

std::string describe_conditions(const GpuConditions& conditions) {
  std::vector<std::string> parts;
  if (conditions.clock_hz) parts.push_back(fmt::format("{:.0f} MHz", *conditions.clock_hz / 1e6));
  if (conditions.power_watts) parts.push_back(fmt::format("{:.0f} W", *conditions.power_watts));
  if (conditions.temperature_celsius)
    parts.push_back(fmt::format("{:.0f} degrees Celsius", *conditions.temperature_celsius));
  return parts.empty() ? "" : fmt::format(", at {}", join(parts, ", "));
}

std::string render_peaks(const GpuProbeReport& report) {
  std::string text;
  for (const GpuPeak& peak : report.matmul) {
    text += fmt::format("{} matmul: {}", enum_name(peak.precision), format_si(peak.flops_per_second, "FLOP/s"));
    if (peak.catalogue_flops)
      text += fmt::format(", {} of the catalogue's {}", format_percent(peak.flops_per_second / *peak.catalogue_flops),
                          format_si(*peak.catalogue_flops, "FLOP/s"));
    text += describe_conditions(peak.conditions) + "\n";
    if (report.model && peak.model_flops_per_second)
      text += fmt::format("  all products in a step of {}: {}\n", *report.model,
                          format_si(*peak.model_flops_per_second, "FLOP/s"));
  }
  return text;
}

std::string render_transfers(const GpuProbeReport& report) {
  TextTable table{{"probe", "kind", "rate", "of catalogue", "noise"}, {}, {2, 3, 4}};
  for (const GpuTransferRate& rate : report.memory) {
    const bool on_gpu = rate.kind == "copy" || rate.kind == "add";
    table.rows.push_back({on_gpu ? "memory" : "host", rate.kind, format_si(rate.bytes_per_second, "B/s"),
                          on_gpu ? share_or_blank(rate.bytes_per_second, report.catalogue_bandwidth) : "",
                          format_noise(rate.measured)});
  }
  return table.rows.empty() ? "" : "\n" + render_text(table);
}

std::string render_launch(const std::optional<GpuLaunch>& launch) {
  if (!launch) return "";
  return fmt::format("\nsmall operations: {} each on the host, {} each on the GPU, {} each replayed from a graph\n",
                     format_duration(launch->given_seconds), format_duration(launch->done_seconds),
                     format_duration(launch->recorded_seconds));
}

}  // namespace

std::string render_probe(const ProbeReport& report) {
  TextTable table = product_table();
  for (const GemmPeak& peak : report.matmul) add_products(table, peak, peak.flops_per_second);
  for (const ProductFormat format : report.no_instructions)
    table.rows.push_back({fmt::format("{} matmul", enum_name(format)), "no instructions", "", "", "", "", ""});
  return fmt::format("{}, {} threads\n\n{}\n{}\n{}{}memory: {}\n", report.cpu, report.threads, render_text(table),
                     render_memory(report.memory), describe_rules(report.matmul), explain_noise(), report.memory.how);
}

std::string render_model_probe(const ModelProbeReport& report) {
  TextTable table = product_table();
  std::string totals;
  for (size_t i = 0; i < report.models.size(); ++i) {
    const ModelRate& model = report.models[i];
    const double peak = report.matmul[i].flops_per_second;
    add_products(table, model.products, peak);
    totals += fmt::format("all {} products in a step of {}: {}, {} of the peak\n", enum_name(model.products.precision),
                          model.model, format_rate(model.flops_per_second, model.products.precision),
                          format_percent(model.flops_per_second / peak));
  }
  const std::string groups = render_groups([&](TextTable& grouped) {
    for (size_t i = 0; i < report.models.size(); ++i)
      if (const ModelRate& model = report.models[i]; model.grouped)
        add_groups(grouped, enum_name(model.products.precision), *model.grouped, report.matmul[i].flops_per_second);
  });
  return fmt::format("{}, {} threads\n\n{}\n{}{}\n{}{}{}", report.cpu, report.threads, render_text(table), groups,
                     totals, describe_rules(report.matmul), explain_noise(), has_rate_above(report) ? k_above : "");
}

std::string render_collectives(const CollectiveReport& report) {
  TextTable table{{"collective", "size", "time", "algorithm", "bus", "noise"}, {}, {1, 2, 3, 4, 5}};
  for (const CollectiveRate& rate : report.rates)
    table.rows.push_back({std::string(enum_name(rate.kind)), format_bytes(rate.bytes),
                          fmt::format("{:.1f} us", rate.measured.median_seconds * 1e6),
                          format_si(rate.algorithm_bytes_per_second, "B/s"),
                          format_si(rate.bus_bytes_per_second, "B/s"), format_noise(rate.measured)});
  return fmt::format("{} ranks\n\n{}\n{}\n{}", report.ranks, render_text(table), report.how, "\n" + explain_noise());
}

std::vector<std::string> list_disturbances(const ModelProbeReport& report) {
  std::vector<std::string> list = list_taken(report.matmul);
  Touched slowed;
  for (const ModelRate& model : report.models) {
    add_slowed(slowed, {model.products});
    if (model.grouped) add_slowed_groups(slowed, enum_name(model.products.precision), *model.grouped);
  }
  slowed.tell(list, k_slowed);
  return list;
}

std::vector<std::string> list_disturbances(const ProbeReport& report) {
  std::vector<std::string> list = list_taken(report.matmul);
  Touched slowed;
  add_slowed(slowed, report.matmul);
  for (const MemoryRate& rate : report.memory.kinds)
    slowed.add(rate.measured.slowed, fmt::format("memory {}", enum_name(rate.kind)));
  slowed.tell(list, k_slowed);
  return list;
}

std::vector<std::string> list_disturbances(const CollectiveReport& report) {
  std::vector<std::string> list;
  Touched slowed, waited;
  for (const CollectiveRate& rate : report.rates) {
    const std::string name = fmt::format("{} of {}", enum_name(rate.kind), format_bytes(rate.bytes));
    slowed.add(rate.measured.slowed, name);
    waited.add(rate.measured.cpu_share < k_undisturbed_share, name);
  }
  waited.tell(list, k_waited);
  slowed.tell(list, k_slowed);
  return list;
}

std::string render_gpu_probe(const GpuProbeReport& report) {
  const std::string part = report.part ? fmt::format("{} ({})", report.gpu, *report.part)
                                       : fmt::format("{} (not in the hardware catalogue)", report.gpu);
  const std::string groups = render_groups([&](TextTable& grouped) {
    for (const GpuPeak& peak : report.matmul)
      if (peak.grouped) add_groups(grouped, enum_name(peak.precision), *peak.grouped);
  });
  return fmt::format(
      "{}\n\n{}\n{}{}{}{}\nrates: median window; noise: scaled median deviation of the windows, * the time "
      "limit was reached before they agreed\n",
      part, render_products(report), groups, render_peaks(report), render_transfers(report),
      render_launch(report.launch));
}

std::vector<std::string> list_disturbances(const GpuProbeReport& report) {
  std::vector<std::string> list;
  Touched groups;
  for (const GpuPeak& peak : report.matmul) {
    for (const GpuRate& rate : peak.products)
      if (rate.measured.slowed)
        list.push_back(fmt::format("{} {} {} x {} x {}: {}", enum_name(peak.precision), enum_name(rate.pass), rate.m,
                                   rate.n, rate.k, k_slowed));
    if (peak.grouped) add_slowed_groups(groups, enum_name(peak.precision), *peak.grouped);
  }
  groups.tell(list, k_slowed);
  return list;
}

}  // namespace tprimat::engine
