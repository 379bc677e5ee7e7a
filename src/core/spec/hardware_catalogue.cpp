#include "spec/hardware_catalogue.h"

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
    const size_t equals = word.find('=');
    CHECK(equals != std::string::npos);
    const auto precision = parse_enum<Precision>(std::string_view(word).substr(0, equals));
    CHECK(precision.has_value());
    rates[*precision] = parse_figure(word.substr(equals + 1)) * k_tera;
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
  part.checked = row.at("checked");
  part.source = row.at("source");
  return part;
}

struct HardwareCatalogue {
  std::vector<HardwareSpec> parts;
  std::map<std::string, size_t> index_of_name;  // folded name
};

HardwareCatalogue load_hardware() {
  HardwareCatalogue catalogue;
  for (const TsvRow& row : parse_tsv_rows(embedded::hardware_tsv)) {
    const HardwareSpec& part = catalogue.parts.emplace_back(parse_hardware(row));
    std::vector<std::string> names = part.device_names;
    names.push_back(part.id);
    names.push_back(part.display_name);
    for (const std::string& name : names) {
      const size_t index = catalogue.parts.size() - 1;
      CHECK(catalogue.index_of_name.try_emplace(fold_name(name), index).first->second == index);
    }
  }
  return catalogue;
}

const HardwareCatalogue& loaded_hardware() {
  static const HardwareCatalogue loaded = load_hardware();
  return loaded;
}

}  // namespace

const std::vector<HardwareSpec>& hardware_catalogue() { return loaded_hardware().parts; }

std::optional<HardwareSpec> find_hardware(std::string_view device_name) {
  const auto found = loaded_hardware().index_of_name.find(fold_name(device_name));
  if (found == loaded_hardware().index_of_name.end()) return std::nullopt;
  return loaded_hardware().parts[found->second];
}

}  // namespace tprimat
