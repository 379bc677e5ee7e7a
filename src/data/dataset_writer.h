#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "data/megatron_index.h"

namespace tprimat {

// Writes a .bin/.idx pair, sequence by sequence, in constant memory but for the index. Both files appear together at
// finish(), under temporary names until then, and the index last: a kill at any moment leaves no pair that could be
// read by mistake.
class DatasetWriter {
 public:
  // As Megatron-LM: uint16 for vocabularies below 65500, else int32. Creates missing folders. Throws Error.
  DatasetWriter(std::string prefix, int64_t vocab_size);
  ~DatasetWriter();  // without finish(), removes what was written
  DatasetWriter(const DatasetWriter&) = delete;
  DatasetWriter& operator=(const DatasetWriter&) = delete;

  void append_document(std::span<const int32_t> tokens);  // one sequence; throws Error when the disk is full
  void finish();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string prefix_;
  std::filesystem::path temporary_;
  std::unique_ptr<std::FILE, CloseFile> bin_;
  MegatronIndex index_;
  int64_t bytes_ = 0;
};

// Writes the synthetic corpus (data/synthetic_corpus.h): `tokens` tokens in documents of `document_length`, the last
// one shorter.
struct SyntheticDatasetSpec {
  std::string prefix;
  int64_t tokens = 0;
  int64_t vocab_size = 0;
  int64_t document_length = 4096;
  int64_t seed = 42;
};
void write_synthetic_dataset(const SyntheticDatasetSpec& spec);  // throws Error

}  // namespace tprimat
