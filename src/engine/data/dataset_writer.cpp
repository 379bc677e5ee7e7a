#include "data/dataset_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "data/megatron_index.h"
#include "data/synthetic_corpus.h"

namespace tprimat::engine {
namespace {

constexpr int64_t k_uint16_vocabulary = 65500;  // Megatron-LM's DType.optimal_dtype
constexpr int64_t k_max_vocabulary = int64_t{1} << 24;
constexpr int64_t k_max_document = int64_t{1} << 30;

Error cannot_write(const std::filesystem::path& path) {
  return Error(Problem{fmt::format("cannot write the file: {}", std::strerror(errno)), path.string(), ""},
               ExitStatus::work_failed);
}

void check_spec(const SyntheticDatasetSpec& spec) {
  std::vector<Problem> problems;
  const auto require = [&](const char* option, int64_t value, int64_t most) {
    if (value < 1 || value > most)
      problems.push_back({fmt::format("must be between 1 and {}, got {}", most, value), option, ""});
  };
  require("--tokens", spec.tokens, int64_t{1} << 50);
  require("--vocab", spec.vocab_size, k_max_vocabulary);
  require("--document-length", spec.document_length, k_max_document);
  if (!problems.empty()) throw Error(std::move(problems));
}

}  // namespace

TokenType default_token_type(int64_t vocab_size) {
  return vocab_size < k_uint16_vocabulary ? TokenType::uint16 : TokenType::int32;
}

DatasetWriter::DatasetWriter(std::string prefix, TokenType type)
    : prefix_(std::move(prefix)), temporary_(fmt::format("{}.bin.{}.tmp", prefix_, ::getpid())) {
  index_.type = type;
  index_.documents.push_back(0);
  const std::filesystem::path folder = temporary_.parent_path();
  std::error_code failure;
  if (!folder.empty() && !std::filesystem::create_directories(folder, failure) && failure) {
    errno = failure.value();
    throw cannot_write(folder);
  }
  bin_.reset(std::fopen(temporary_.c_str(), "wb"));
  if (!bin_) throw cannot_write(temporary_);
}

DatasetWriter::~DatasetWriter() {
  if (!bin_) return;
  bin_.reset();
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void DatasetWriter::write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), bin_.get()) != bytes.size()) throw cannot_write(temporary_);
}

void DatasetWriter::index_sequence(int64_t length) {
  index_.sizes.push_back(static_cast<int32_t>(length));
  index_.pointers.push_back(bytes_);
  bytes_ += length * token_bytes(index_.type);
}

void DatasetWriter::append_sequence(std::span<const int32_t> tokens) {
  converted_.clear();
  if (!append_tokens(index_.type, tokens, converted_))
    throw Error(Problem{
        fmt::format("a token of sequence {} does not fit the type {}", index_.sizes.size(), enum_name(index_.type)),
        prefix_ + ".bin", "choose a wider type"});
  write(converted_);
  index_sequence(static_cast<int64_t>(tokens.size()));
}

void DatasetWriter::end_document() { index_.documents.push_back(static_cast<int64_t>(index_.sizes.size())); }

void DatasetWriter::append_document(std::span<const int32_t> tokens) {
  append_sequence(tokens);
  end_document();
}

void DatasetWriter::append_documents(std::span<const std::byte> tokens, std::span<const int32_t> lengths) {
  write(tokens);
  for (const int32_t length : lengths) {
    if (length > 0) index_sequence(length);
    end_document();
  }
}

void DatasetWriter::finish() {
  if (std::fflush(bin_.get()) != 0 || ::fsync(::fileno(bin_.get())) != 0) throw cannot_write(temporary_);
  std::error_code failure;
  std::filesystem::remove(prefix_ + ".idx", failure);  // an old index must never stand beside the new tokens
  if (!failure) std::filesystem::rename(temporary_, prefix_ + ".bin", failure);
  if (failure) {
    errno = failure.value();
    throw cannot_write(prefix_ + ".bin");
  }
  bin_.reset();
  write_file_atomically(prefix_ + ".idx", print_megatron_index(index_));
}

void write_synthetic_dataset(const SyntheticDatasetSpec& spec) {
  check_spec(spec);
  const SyntheticCorpus corpus(spec.vocab_size, spec.seed);
  DatasetWriter writer(spec.prefix, spec.vocab_size);
  std::vector<int32_t> document;
  for (int64_t written = 0, index = 0; written < spec.tokens; written += spec.document_length, ++index) {
    document.resize(static_cast<size_t>(std::min(spec.document_length, spec.tokens - written)));
    corpus.read_sample(index, document);
    writer.append_document(document);
  }
  writer.finish();
}

}  // namespace tprimat::engine
