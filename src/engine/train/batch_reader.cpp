#include "train/batch_reader.h"

#include <algorithm>

#include "base/check.h"

namespace tprimat::engine {

BatchReader::BatchReader(const TrainSpec& spec, const RankPlace& place, const BatchBuffers& buffers)
    : sequences_(spec.micro_batch_size),
      local_length_(spec.sequence_length / spec.parallel.context),
      micro_batches_(spec.gradient_accumulation_steps()),
      order_(spec, place),
      pieces_(context_pieces(spec.sequence_length, place.context, static_cast<int>(spec.parallel.context))),
      sample_(static_cast<size_t>(spec.sequence_length) + 1),
      read_tokens_(static_cast<size_t>(micro_batches_ * sequences_ * local_length_)),
      read_targets_(read_tokens_.size()),
      buffers_(buffers) {
  CHECK(std::ssize(read_tokens_) == buffers.tokens.count);
}

void BatchReader::attach(const Arena& arena, Device& device) {
  arena_ = &arena;
  device_ = &device;
}

void BatchReader::read(int64_t first_sample, const TokenSource& source) {
  int64_t at = 0;
  for (int64_t micro = 0; micro < micro_batches_; ++micro) {
    for (int64_t s = 0; s < sequences_; ++s) {
      source.read_sample(first_sample + order_.sample_at(micro * sequences_ + s), sample_);
      for (const ContextPiece& piece : pieces_) {
        const auto from = sample_.begin() + piece.first_position;
        std::copy_n(from, piece.length, read_tokens_.begin() + at);
        std::copy_n(from + 1, piece.length, read_targets_.begin() + at);
        at += piece.length;
      }
    }
  }
  const size_t bytes = read_tokens_.size() * sizeof(int32_t);
  device_->upload(arena_->at(buffers_.tokens), read_tokens_.data(), bytes);
  device_->upload(arena_->at(buffers_.targets), read_targets_.data(), bytes);
}

MicroBatch BatchReader::micro_batch(int64_t micro) const {
  const int64_t first = micro * sequences_ * local_length_;
  return {arena_->at(buffers_.tokens) + first, arena_->at(buffers_.targets) + first};
}

}  // namespace tprimat::engine
