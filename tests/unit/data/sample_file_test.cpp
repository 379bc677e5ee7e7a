#include "data/token_source.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/files.h"
#include "data/synthetic_corpus.h"
#include "unit/temporary_folder.h"

namespace tprimat::engine {
namespace {

TEST(SampleFile, HoldsTheSamplesOfTheSourceAsNumpyReadsThem) {
  constexpr int64_t k_count = 131, k_length = 20;  // more than are written together
  const SyntheticCorpus corpus(97, 5);
  const test::TemporaryFolder folder;
  write_sample_file(corpus, k_count, k_length, folder / "samples.npy");
  const std::string file = read_file(folder / "samples.npy");
  const std::string_view magic("\x93NUMPY\x01\x00", 8);
  ASSERT_EQ(file.substr(0, 8), magic);
  const size_t header = 10 + static_cast<uint8_t>(file[8]) + 256 * static_cast<size_t>(static_cast<uint8_t>(file[9]));
  EXPECT_EQ(header % 64, 0u);
  EXPECT_EQ(file[header - 1], '\n');
  EXPECT_EQ(file.find("{'descr': '<i4', 'fortran_order': False, 'shape': (131, 21), }"), 10u);
  ASSERT_EQ(file.size(), header + k_count * (k_length + 1) * sizeof(int32_t));
  std::vector<int32_t> expected(k_length + 1), written(k_length + 1);
  for (int64_t i = 0; i < k_count; ++i) {
    corpus.read_sample(i, expected);
    std::memcpy(written.data(), file.data() + header + static_cast<size_t>(i) * 21 * 4, 21 * 4);
    ASSERT_EQ(written, expected) << i;
  }
}

}  // namespace
}  // namespace tprimat::engine
