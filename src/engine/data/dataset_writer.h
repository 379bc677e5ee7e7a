#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/megatron_index.h"

namespace tprimat::engine {

// As Megatron-LM's DType.optimal_dtype: uint16 for vocabularies below 65500, else int32.
TokenType default_token_type(int64_t vocab_size);

// Writes a .bin/.idx pair, sequence by sequence, in constant memory but for the index. Both files appear together at
// finish(), under temporary names until then, and the index last: a kill at any moment leaves no pair that could be
// read by mistake.
class DatasetWriter {
 public:
  DatasetWriter(std::string prefix, TokenType type);  // creates missing folders; throws Error
  DatasetWriter(std::string prefix, int64_t vocab_size)
      : DatasetWriter(std::move(prefix), default_token_type(vocab_size)) {}
  ~DatasetWriter();  // without finish(), removes what was written
  DatasetWriter(const DatasetWriter&) = delete;
  DatasetWriter& operator=(const DatasetWriter&) = delete;

  // Throw Error when the disk is full, and for a token that the type cannot hold.
  void append_sequence(std::span<const int32_t> tokens);
  void end_document();                                    // the sequences since the last end are one document
  void append_document(std::span<const int32_t> tokens);  // of one sequence

  // Documents of one sequence each, or of none where the length is 0, as Megatron-LM's preprocess_data.py writes them:
  // their tokens one after the other, converted already, and the length of each.
  void append_documents(std::span<const std::byte> tokens, std::span<const int32_t> lengths);
  void finish();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void write(std::span<const std::byte> bytes);
  void index_sequence(int64_t length);

  std::string prefix_;
  std::filesystem::path temporary_;
  std::unique_ptr<std::FILE, CloseFile> bin_;
  MegatronIndex index_;
  std::vector<std::byte> converted_;
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

}  // namespace tprimat::engine
