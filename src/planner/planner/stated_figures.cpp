#include "planner/stated_figures.h"

#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "text/words.h"

namespace tprimat::planner {
namespace {

constexpr int64_t k_max_gpus = int64_t{1} << 20;

int64_t parse_count(std::string_view text, const std::string& word, const std::string& option) {
  const auto count = parse_number<int64_t>(text);
  if (count && *count >= 1 && *count <= k_max_gpus) return *count;
  throw Error(Problem{fmt::format("'{}' is not a number of GPUs", word.substr(0, 64)), option,
                      fmt::format("write 64, 8,16,64 or 8..16384; from 1 to {}", k_max_gpus)});
}

void add_counts(std::vector<int64_t>& counts, const std::string& word, const std::string& option,
                std::vector<std::string>& left_out) {
  const size_t dots = word.find("..");
  if (dots == std::string::npos) return counts.push_back(parse_count(word, word, option));
  const int64_t first = parse_count(std::string_view(word).substr(0, dots), word, option);
  const int64_t last = parse_count(std::string_view(word).substr(dots + 2), word, option);
  if (first > last)
    throw Error(Problem{fmt::format("'{}' ends before it begins", word.substr(0, 64)), option,
                        fmt::format("write {}..{}", last, first)});
  for (int64_t count = first; count <= last; count *= 2) counts.push_back(count);
  if (const int64_t reached = counts.back(); reached != last)
    left_out.push_back(fmt::format("{}: {} doubles up to {} and leaves {} out; write {}..{},{} to include it", option,
                                   word, reached, last, first, reached, last));
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

std::vector<std::string> split_lists(const std::vector<std::string>& lists, const std::string& option) {
  std::vector<std::string> words;
  for (const std::string& list : lists)
    for (const std::string_view word : split(list, ',')) {
      if (word.empty())
        throw Error(Problem{fmt::format("'{}' has an empty entry", list.substr(0, 64)), option,
                            "separate the values with commas"});
      words.emplace_back(word);
    }
  return words;
}

std::vector<int64_t> parse_counts(const std::vector<std::string>& words, const std::string& option,
                                  std::vector<std::string>& left_out) {
  std::vector<int64_t> counts;
  for (const std::string& word : words) add_counts(counts, word, option, left_out);
  const std::set<int64_t> sorted(counts.begin(), counts.end());
  return {sorted.begin(), sorted.end()};
}

double parse_tokens(const std::string& text, const std::string& option) {
  constexpr double k_max = 1e18;
  const double unit = text.empty() ? 0 : unit_of(text.back());
  const auto number = parse_number<double>(std::string_view(text).substr(0, text.size() - (unit > 0 ? 1 : 0)));
  const double tokens = number ? *number * (unit > 0 ? unit : 1) : 0;
  if (tokens >= 1 && tokens <= k_max) return tokens;
  throw Error(Problem{fmt::format("'{}' is not a number of tokens", text.substr(0, 64)), option,
                      "write 15T, 300B or 1.5e13; at least 1, at most 1e18"});
}

StatedPrice parse_price(const std::string& text, const std::string& option) {
  constexpr double k_max = 1e6;
  const size_t equals = text.find('=');
  const bool of_one = equals != std::string::npos;
  const auto usd = parse_number<double>(std::string_view(text).substr(of_one ? equals + 1 : 0));
  if (usd && *usd > 0 && *usd <= k_max && equals != 0) return {of_one ? text.substr(0, equals) : "", *usd};
  throw Error(Problem{fmt::format("'{}' is not a price", text.substr(0, 64)), option,
                      "write USD per GPU-hour, 2.5 or H100=2.5,B200=4; above 0, at most 1e6"});
}

PlanPrecision parse_plan_precision(const std::string& text, const std::string& option, bool of_processor) {
  const auto precision = parse_enum<PlanPrecision>(text);
  if (precision && (*precision != PlanPrecision::fp32 || of_processor)) return *precision;
  throw Error(Problem{fmt::format("the planner does not support '{}'", text.substr(0, 64)), option,
                      "choose bf16, fp16, fp8 or fp4; with --gpu cpu also fp32"});
}

}  // namespace tprimat::planner
