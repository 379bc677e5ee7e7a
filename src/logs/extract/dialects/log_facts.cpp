#include "extract/dialects/log_facts.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace tprimat::logs {

std::optional<int64_t> count_after(std::string_view text, std::string_view key) {
  const auto rest = text_after(text, key);
  const auto count = rest ? parse_whole(*rest) : std::nullopt;
  return count && *count >= 1 ? count : std::nullopt;
}

Figure number_before(std::string_view text, std::string_view mark) {
  const size_t end = text.find(mark);
  if (end == std::string_view::npos) return {};
  const size_t before = end == 0 ? std::string_view::npos : text.find_last_not_of("0123456789.,eE+-", end - 1);
  return parse_number(text.substr(before == std::string_view::npos ? 0 : before + 1,
                                  end - (before == std::string_view::npos ? 0 : before + 1)));
}

std::optional<Platform> platform_of_gpu(std::string_view name) {
  for (const std::string_view mark : {"NVIDIA", "Tesla", "GeForce", "A100", "A800", "H100", "H200", "H800", "B200",
                                      "B300", "V100", "RTX", "Quadro", "GH200", "L40"})
    if (contains(name, mark)) return Platform::nvd;
  for (const std::string_view mark :
       {"AMD", "Instinct", "MI100", "MI210", "MI250", "MI300", "MI325", "MI350", "MI355", "Radeon", "gfx9"})
    if (contains(name, mark)) return Platform::amd;
  return std::nullopt;
}

std::optional<Precision> precision_named(std::string_view name) {
  std::string lower(trim(name));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  std::string_view word = lower;
  if (word.substr(0, 6) == "torch.") word.remove_prefix(6);
  return parse_enum<Precision>(word);
}

std::optional<int64_t> whole_ratio(const RoundedNumber& all, const RoundedNumber& each) {
  if (!(each.low > 0) || !(all.low > 0)) return std::nullopt;
  const double low = all.low / each.high, high = all.high / each.low;
  const double whole = std::ceil(low);
  if (!(whole >= 1) || whole > high || whole + 1 <= high || whole > 1e7) return std::nullopt;
  return static_cast<int64_t>(whole);
}

}  // namespace tprimat::logs
