#include "spec/hardware_catalogue.h"

#include <cctype>

#include "base/check.h"
#include "spec/tsv_rows.h"

namespace tprimat {
namespace embedded {
extern const std::string_view hardware_tsv;
}

namespace {

constexpr double k_tera = 1e12;
constexpr double k_giga = 1e9;

// "bf16=989 fp8=1979", in TFLOP/s
std::map<Precision, double> parse_rates(std::string_view text) {
  std::map<Precision, double> rates;
  for (const std::string& word : split_words(text, ' ')) {
    const auto [name, value] = split_setting(word);
    const auto precision = parse_enum<Precision>(name);
    CHECK(precision.has_value());
    rates[*precision] = parse_figure(value) * k_tera;
  }
  return rates;
}

std::optional<double> parse_optional(std::string_view text, double unit) {
  if (text == "-") return std::nullopt;
  return parse_figure(text) * unit;
}

HardwareSpec parse_hardware(const TsvRow& row) {
  HardwareSpec part;
  part.id = row.at("id");
  part.display_name = row.at("full_name");
  const auto platform = parse_enum<Platform>(row.at("platform"));
  CHECK(platform.has_value());
  part.platform = *platform;
  part.device_names = split_words(row.at("names"), '|');
  part.dense_peak_flops = parse_rates(row.at("dense"));
  part.achievable_flops = parse_rates(row.at("mamf"));
  part.memory_bytes = parse_optional(row.at("memory_gb"), k_giga);
  part.memory_bandwidth = parse_optional(row.at("bandwidth_gbps"), k_giga);
  part.tdp_watts = parse_optional(row.at("tdp_watts"), 1.0);
  if (row.at("cores") != "-") {
    const std::vector<std::string> figures = split_words(row.at("cores"), 'x');
    CHECK(figures.size() == 2);
    part.compute_units = static_cast<int64_t>(parse_figure(figures[0]));
    part.cores_per_unit = static_cast<int64_t>(parse_figure(figures[1]));
  }
  part.checked = row.at("checked");
  part.source = row.at("source");
  return part;
}

const NamedRows<HardwareSpec>& loaded_hardware() {
  static const NamedRows<HardwareSpec> loaded(embedded::hardware_tsv, parse_hardware, "id", "names");
  return loaded;
}

}  // namespace

const std::vector<HardwareSpec>& hardware_catalogue() { return loaded_hardware().rows(); }

std::optional<HardwareSpec> find_hardware(std::string_view device_name) {
  const HardwareSpec* found = loaded_hardware().find(device_name);
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

bool is_same_device(const std::string& a, const std::string& b) {
  const auto squeeze = [](std::string text) {
    std::erase_if(text, [](char c) { return c == ' ' || c == '-' || c == '_'; });
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  };
  if (squeeze(a) == squeeze(b)) return true;
  const auto x = find_hardware(a), y = find_hardware(b);
  return x && y && x->id == y->id;
}

}  // namespace tprimat
