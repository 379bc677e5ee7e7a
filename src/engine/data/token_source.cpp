#include "data/token_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "base/files.h"
#include "data/megatron_dataset.h"
#include "data/synthetic_corpus.h"

namespace tprimat::engine {
namespace {

int64_t seed_of_split(int64_t seed, DataSplit split) {
  if (split == DataSplit::train) return seed;
  return static_cast<int64_t>(scramble_bits(static_cast<uint64_t>(seed)) + static_cast<uint64_t>(split));
}

// Magic, version, length of what follows (u16), and a Python dict that ends at a multiple of 64 bytes.
std::string npy_header(int64_t rows, int64_t columns) {
  static_assert(std::endian::native == std::endian::little);
  std::string dict = fmt::format("{{'descr': '<i4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
  constexpr size_t k_before = 10, k_unit = 64;
  while ((k_before + dict.size() + 1) % k_unit != 0) dict += ' ';
  dict += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

}  // namespace

std::unique_ptr<TokenSource> open_token_source(const DataSpec& data, const TokenRequest& request) {
  if (data.is_synthetic())
    return std::make_unique<SyntheticCorpus>(request.vocab_size, seed_of_split(request.seed, request.split));
  return std::make_unique<MegatronDataset>(data.dataset, request, data.split);
}

void write_sample_file(const TokenSource& source, int64_t count, int64_t sequence_length,
                       const std::filesystem::path& path) {
  constexpr int64_t k_together = 64;  // samples
  const auto width = static_cast<size_t>(sequence_length + 1);
  NewFile file(path);
  file.write(npy_header(count, sequence_length + 1));
  std::vector<int32_t> tokens(k_together * width);
  for (int64_t first = 0; first < count; first += k_together) {
    const auto rows = static_cast<size_t>(std::min(k_together, count - first));
    for (size_t row = 0; row < rows; ++row)
      source.read_sample(first + static_cast<int64_t>(row), std::span(tokens).subspan(row * width, width));
    file.write({reinterpret_cast<const char*>(tokens.data()), rows * width * sizeof(int32_t)});
  }
  file.finish(Survives::kill);
}

}  // namespace tprimat::engine
