#include "cli/plan_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace tprimat {
namespace {

constexpr int64_t k_most_gpus = int64_t{1} << 20;

template <class Number>
std::optional<Number> parse_whole_text(std::string_view text) {
  Number value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

int64_t parse_count(std::string_view text, const std::string& word, const std::string& option) {
  const auto count = parse_whole_text<int64_t>(text);
  if (count && *count >= 1 && *count <= k_most_gpus) return *count;
  throw Error(Problem{fmt::format("'{}' is no number of GPUs", word.substr(0, 64)), option,
                      fmt::format("write 64, 8,16,64 or 8..16384; from 1 to {}", k_most_gpus)});
}

void add_counts(std::vector<int64_t>& counts, const std::string& word, const std::string& option) {
  const size_t dots = word.find("..");
  if (dots == std::string::npos) return counts.push_back(parse_count(word, word, option));
  const int64_t first = parse_count(std::string_view(word).substr(0, dots), word, option);
  const int64_t last = parse_count(std::string_view(word).substr(dots + 2), word, option);
  if (first > last)
    throw Error(Problem{fmt::format("'{}' ends before it begins", word.substr(0, 64)), option,
                        fmt::format("write {}..{}", last, first)});
  for (int64_t count = first; count <= last; count *= 2) counts.push_back(count);
}

double unit_of(char last) {
  switch (last) {
    case 'T': return 1e12;
    case 'B':
    case 'G': return 1e9;
    case 'M': return 1e6;
    case 'K':
    case 'k': return 1e3;
    default: return 0;
  }
}

}  // namespace

std::vector<int64_t> parse_counts(const std::vector<std::string>& words, const std::string& option) {
  std::vector<int64_t> counts;
  for (const std::string& word : words) add_counts(counts, word, option);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

double parse_tokens(const std::string& text, const std::string& option) {
  constexpr double k_most = 1e18;
  const double unit = text.empty() ? 0 : unit_of(text.back());
  const auto number = parse_whole_text<double>(std::string_view(text).substr(0, text.size() - (unit > 0 ? 1 : 0)));
  const double tokens = number ? *number * (unit > 0 ? unit : 1) : 0;
  if (tokens >= 1 && tokens <= k_most) return tokens;
  throw Error(Problem{fmt::format("'{}' is no number of tokens", text.substr(0, 64)), option,
                      "write 15T, 300B or 1.5e13; at least 1, at most 1e18"});
}

StatedPrice parse_price(const std::string& text, const std::string& option) {
  constexpr double k_most = 1e6;
  const size_t equals = text.find('=');
  StatedPrice price;
  if (equals != std::string::npos) price.gpu = text.substr(0, equals);
  const auto usd =
      parse_whole_text<double>(std::string_view(text).substr(equals == std::string::npos ? 0 : equals + 1));
  if (usd && *usd > 0 && *usd <= k_most && equals != 0) {
    price.usd_per_gpu_hour = *usd;
    return price;
  }
  throw Error(Problem{fmt::format("'{}' is no price", text.substr(0, 64)), option,
                      "write USD per GPU and hour, 2.5 or H100=2.5,B200=4; above 0, at most 1e6"});
}

}  // namespace tprimat
