#include "data/data_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/error.h"

namespace tprimat::engine {
namespace {

constexpr size_t k_splits = 3;

[[noreturn]] void refuse_split(const std::string& weights, std::string_view why) {
  throw Error(Problem{fmt::format("the split \"{}\" {}", weights, why), "data.split",
                      "give the weights of training, validation and test, such as 949,50,1"});
}

std::array<double, k_splits> parse_weights(const std::string& weights) {
  std::string text = weights;
  std::erase(text, ' ');
  std::array<double, k_splits> values{};
  const char *at = text.data(), *const end = at + text.size();
  for (size_t i = 0;; ++i, ++at) {
    if (i == k_splits) refuse_split(weights, "has more than three weights");
    const auto [stop, failure] = std::from_chars(at, end, values[i], std::chars_format::fixed);
    if (failure != std::errc() || !(values[i] >= 0) || !std::isfinite(values[i]))
      refuse_split(weights, "is not a list of positive numbers");
    at = stop;
    if (at == end) return values;
    if (*at != ',') refuse_split(weights, "is not a comma-separated list of numbers");
  }
}

}  // namespace

std::optional<SequenceRange> split_sequences(const std::string& weights, DataSplit split, int64_t sequences) {
  const std::array<double, k_splits> values = parse_weights(weights);
  const double sum = values[0] + values[1] + values[2];
  if (!(sum > 0) || !std::isfinite(sum)) refuse_split(weights, "has no positive sum");
  double begin = 0, end = 0;
  for (size_t i = 0; i <= static_cast<size_t>(split); ++i) {
    begin = end;
    end += values[i] / sum;
  }
  if (end <= begin) return std::nullopt;
  const auto border = [&](double share) {
    const auto place = static_cast<int64_t>(std::nearbyint(share * static_cast<double>(sequences)));
    return std::min(place, sequences);
  };
  return SequenceRange{border(begin), border(end)};
}

}  // namespace tprimat::engine
