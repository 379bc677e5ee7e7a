#include "extract/dialects/log_facts.h"

#include <cmath>
#include <string>

#include "result/printed_settings.h"

namespace tprimat::logs {

std::optional<int64_t> count_after(std::string_view text, std::string_view key) {
  const auto count = whole_after(text, key);
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
  const std::string lower = lower_case(std::string(trim(name)));
  std::string_view word = lower;
  take_literal(word, "torch.");
  return parse_enum<Precision>(word);
}

namespace {

// The only whole number within the rounding of the ratio of two rates; nothing if there are several.
std::optional<int64_t> whole_ratio(const RoundedNumber& all, const RoundedNumber& each) {
  if (!(each.low > 0) || !(all.low > 0)) return std::nullopt;
  const double low = all.low / each.high, high = all.high / each.low;
  const double whole = std::ceil(low);
  if (!(whole >= 1) || whole > high || whole + 1 <= high || whole > 1e7) return std::nullopt;
  return static_cast<int64_t>(whole);
}

}  // namespace

bool set_token_rates(ExtractedStep& step, const std::optional<RoundedNumber>& all,
                     const std::optional<RoundedNumber>& each, LoggedFacts& facts) {
  if (all) step.tokens_per_second = all->value;
  if (each) step.tokens_per_second_per_gpu = each->value;
  if (!all || !each || facts.gpu_count) return false;
  facts.gpu_count = whole_ratio(*all, *each);
  return facts.gpu_count.has_value();
}

}  // namespace tprimat::logs
