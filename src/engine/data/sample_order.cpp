#include "data/sample_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>

#include "base/check.h"
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

constexpr double k_final_epoch_threshold = 0.80;
constexpr int64_t k_max_entries = std::numeric_limits<uint32_t>::max() - 1;  // from here on numpy draws 64 bits

struct Extent {
  int64_t tokens, epochs, samples;  // samples of all epochs
  int64_t before_last;              // samples of all epochs but the last
};

int64_t samples_of(int64_t tokens, const SampleOrderRequest& request) {
  return std::max<int64_t>(0, tokens - request.extra_token) / request.sequence_length;
}

Extent measure(const SampleOrderRequest& request) {
  const auto first = request.lengths.begin() + request.range.begin;
  const int64_t tokens = std::accumulate(first, first + request.range.count(), int64_t{0});
  if (tokens == 0) throw Error(Problem{"the split holds no tokens", "data.split", "give it a larger weight"});
  const auto refuse_too_many = [](int64_t count, int64_t most, const char* what) {
    if (count > most)
      throw Error(Problem{fmt::format("the data order needs {} {}, more than {}", count, what, most), "", ""});
  };
  const int64_t asked = request.samples.value_or(0);
  refuse_too_many(asked, k_max_entries, "samples");
  const int64_t wanted = asked * request.sequence_length + request.extra_token;
  const int64_t epochs = std::max<int64_t>(1, (wanted + tokens - 1) / tokens);
  refuse_too_many(epochs, std::max<int64_t>(1, k_max_entries / request.range.count()), "epochs");
  const Extent extent{tokens, epochs, samples_of(epochs * tokens, request), samples_of((epochs - 1) * tokens, request)};
  refuse_too_many(extent.samples, k_max_entries, "samples");
  return extent;
}

bool sets_final_epoch_apart(const Extent& extent, const SampleOrderRequest& request) {
  if (extent.epochs == 1) return false;
  const int64_t from_last = *request.samples - extent.before_last;
  const int64_t per_epoch = samples_of(extent.tokens, request);
  return from_last < static_cast<int64_t>(k_final_epoch_threshold * static_cast<double>(per_epoch));
}

void append_shuffled_epochs(std::vector<int32_t>& sequences, int64_t epochs, SequenceRange range, NumpyRandom& random) {
  const size_t before = sequences.size();
  sequences.resize(before + static_cast<size_t>(epochs * range.count()));
  const std::span<int32_t> added = std::span(sequences).subspan(before);
  for (size_t i = 0; i < added.size(); ++i)
    added[i] = static_cast<int32_t>(range.begin + static_cast<int64_t>(i) % range.count());
  random.shuffle(added);
}

void append_shuffled_samples(std::vector<uint32_t>& shuffle, int64_t end, NumpyRandom& random) {
  const size_t before = shuffle.size();
  shuffle.resize(static_cast<size_t>(end));
  std::iota(shuffle.begin() + static_cast<int64_t>(before), shuffle.end(), static_cast<uint32_t>(before));
  random.shuffle(std::span(shuffle).subspan(before));
}

// Token n·SL of the stream begins sample n. Where a sample ends exactly with a sequence, the shared token is that
// sequence's last.
std::vector<SampleStart> cut_samples(const std::vector<int32_t>& sequences, int64_t samples,
                                     const SampleOrderRequest& request) {
  std::vector<SampleStart> starts(static_cast<size_t>(samples) + 1);
  size_t position = 0;
  int64_t offset = 0;
  for (size_t sample = 1; sample < starts.size(); ++sample) {
    int64_t left = request.sequence_length + request.extra_token;
    for (;;) {
      const int64_t here = request.lengths[static_cast<size_t>(sequences[position])] - offset;
      if (here >= left) break;
      CHECK(position + 1 < sequences.size());
      left -= here;
      offset = 0;
      ++position;
    }
    offset += left - request.extra_token;
    starts[sample] = {static_cast<uint32_t>(position), static_cast<int32_t>(offset)};
  }
  return starts;
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

uint32_t NumpyRandom::draw_interval(uint32_t most) {
  if (most == 0) return 0;
  const uint32_t mask = ~uint32_t{0} >> std::countl_zero(most);
  uint32_t value;
  do {
    value = static_cast<uint32_t>(generator_()) & mask;
  } while (value > most);
  return value;
}

SampleOrder order_samples(const SampleOrderRequest& request) {
  CHECK(request.sequence_length > 0 && request.range.begin >= 0 && request.range.begin <= request.range.end);
  CHECK(request.range.end <= static_cast<int64_t>(request.lengths.size()));
  const Extent extent = measure(request);
  SampleOrder order;
  order.tokens_per_epoch = extent.tokens;
  order.epochs = extent.epochs;
  order.final_epoch_apart = sets_final_epoch_apart(extent, request);
  NumpyRandom random(request.seed);
  const int64_t apart = order.final_epoch_apart ? 1 : 0;
  append_shuffled_epochs(order.sequences, extent.epochs - apart, request.range, random);
  if (apart) append_shuffled_epochs(order.sequences, 1, request.range, random);
  order.starts = cut_samples(order.sequences, extent.samples, request);
  append_shuffled_samples(order.shuffle, apart ? extent.before_last : extent.samples, random);
  if (apart) append_shuffled_samples(order.shuffle, extent.samples, random);
  return order;
}

}  // namespace tprimat::engine
