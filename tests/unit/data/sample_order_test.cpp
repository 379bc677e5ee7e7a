#include "data/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "text/json.h"

namespace tprimat::engine {
namespace {

// numpy.random.RandomState(seed).shuffle(numpy.arange(12)), then of arange(7) with the same state.
TEST(NumpyRandom, ShufflesAsNumpy) {
  const auto shuffled = [](uint32_t seed) {
    NumpyRandom random(seed);
    std::vector<int32_t> first(12), second(7);
    std::iota(first.begin(), first.end(), 0);
    std::iota(second.begin(), second.end(), 0);
    random.shuffle(std::span(first));
    random.shuffle(std::span(second));
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  EXPECT_EQ(shuffled(0u), (std::vector<int32_t>{6, 11, 4, 10, 2, 8, 1, 7, 9, 3, 0, 5, 6, 3, 5, 1, 2, 4, 0}));
  EXPECT_EQ(shuffled(1234u), (std::vector<int32_t>{7, 8, 11, 2, 9, 10, 1, 0, 4, 5, 6, 3, 1, 0, 3, 2, 5, 4, 6}));
  EXPECT_EQ(shuffled(4294967295u), (std::vector<int32_t>{11, 8, 5, 9, 1, 10, 6, 0, 4, 7, 2, 3, 0, 4, 5, 1, 6, 2, 3}));
}

TEST(NumpyRandom, ShufflesManyAsNumpy) {
  NumpyRandom random(42);
  std::vector<uint32_t> values(100000);
  std::iota(values.begin(), values.end(), 0u);
  random.shuffle(std::span(values));
  uint64_t sum = 0;
  for (uint64_t i = 0; i < values.size(); ++i) sum += i * values[i];
  EXPECT_EQ(values.front(), 75721u);
  EXPECT_EQ(sum, 249851129327323u);
}

std::string borders(const std::string& weights, int64_t sequences) {
  std::string text;
  for (const DataSplit split : {DataSplit::train, DataSplit::valid, DataSplit::test}) {
    const auto range = split_sequences(weights, split, sequences);
    text += range ? std::to_string(range->begin) + "-" + std::to_string(range->end) + " " : "none ";
  }
  return text;
}

// From parse_and_normalize_split and the rounding of BlendedMegatronDatasetBuilder.
TEST(SplitSequences, RoundsAsMegatron) {
  EXPECT_EQ(borders("949,50,1", 1000), "0-949 949-999 999-1000 ");
  EXPECT_EQ(borders("949,50,1", 1001), "0-950 950-1000 1000-1001 ");
  EXPECT_EQ(borders("969, 30, 1", 37), "0-36 36-37 37-37 ");
  EXPECT_EQ(borders("1,1", 5), "0-2 2-5 none ");
  EXPECT_EQ(borders("1,1,1", 2), "0-1 1-1 1-2 ");
  EXPECT_EQ(borders("0.3,0.3,0.4", 12345), "0-3704 3704-7407 7407-12345 ");
  EXPECT_EQ(borders("100,0,0", 7), "0-7 none none ");
  EXPECT_EQ(borders("0,1,0", 9), "none 0-9 none ");
  EXPECT_EQ(borders("98,2,0", 25), "0-24 24-25 none ");
  EXPECT_EQ(borders("5,5", 3), "0-2 2-3 none ");
}

TEST(SplitSequences, RefusesWhatIsNoList) {
  for (const char* bad : {"", "a", "1,,2", "1;2", "-1,2", "0,0,0", "1,2,3,4", "nan", "inf", "1,", "1e400"})
    EXPECT_THROW(split_sequences(bad, DataSplit::train, 10), Error) << bad;
}

std::vector<std::vector<int64_t>> as_rows(const std::vector<SampleStart>& starts) {
  std::vector<std::vector<int64_t>> rows;
  for (const SampleStart& start : starts) rows.push_back({start.position, start.offset});
  return rows;
}

// The fixture was written by megatron-core's own GPTDataset: tests/parity/megatron_data.py --write-goldens.
TEST(OrderSamples, IsThatOfGptDataset) {
  const std::string path = TPRIMAT_SOURCE_DIR "/tests/unit/data/fixtures/megatron_order.json";
  const Json cases = parse_json(read_file(path), path);
  int apart = 0;
  for (const Json& golden : cases) {
    const auto lengths = golden["lengths"].get<std::vector<int32_t>>();
    const auto samples = golden["samples"].get<int64_t>();
    const auto split = *parse_enum<DataSplit>(golden["split"].get<std::string>());
    const auto range =
        split_sequences(golden["weights"].get<std::string>(), split, static_cast<int64_t>(lengths.size()));
    const SampleOrder order =
        order_samples({lengths, *range, golden["sequence_length"].get<int64_t>(),
                       samples ? std::optional(samples) : std::nullopt, golden["seed"].get<uint32_t>()});
    EXPECT_EQ(order.sequences, golden["document_index"].get<std::vector<int32_t>>());
    EXPECT_EQ(as_rows(order.starts), golden["sample_index"].get<std::vector<std::vector<int64_t>>>());
    EXPECT_EQ(order.shuffle, golden["shuffle_index"].get<std::vector<uint32_t>>());
    apart += order.final_epoch_apart;
  }
  EXPECT_GE(cases.size(), 15u);
  EXPECT_GE(apart, 3);  // the goldens hold that rule too
}

TEST(OrderSamples, WithoutTheExtraTokenSamplesDoNotOverlap) {
  const std::vector<int32_t> lengths = {4, 4, 4};
  SampleOrderRequest request{lengths, {0, 3}, 4, std::nullopt, 1};
  EXPECT_EQ(order_samples(request).samples(), 2);
  request.extra_token = false;
  EXPECT_EQ(order_samples(request).samples(), 3);
}

TEST(OrderSamples, RefusesWhatCannotBeOrdered) {
  const std::vector<int32_t> empty = {0, 0}, small = {3, 4};
  EXPECT_THROW(order_samples({empty, {0, 2}, 4, 3, 1}), Error);
  EXPECT_THROW(order_samples({small, {0, 2}, 4, int64_t{1} << 40, 1}), Error);
}

}  // namespace
}  // namespace tprimat::engine
