#include "train/batch_reader.h"

#include <algorithm>

namespace tprimat {

BatchReader::BatchReader(const TrainSpec& spec, const RankPlace& place)
    : sequences_(spec.micro_batch_size),
      sequence_length_(spec.sequence_length),
      local_length_(spec.sequence_length / spec.parallel.context),
      micro_batches_(spec.gradient_accumulation_steps()),
      order_(spec, place),
      pieces_(context_pieces(spec.sequence_length, place.context, static_cast<int>(spec.parallel.context))),
      sample_(static_cast<size_t>(spec.sequence_length) + 1),
      tokens_(static_cast<size_t>(micro_batches_ * sequences_ * local_length_)),
      targets_(tokens_.size()) {}

void BatchReader::read(int64_t first_sample, const TokenSource& source) {
  int64_t at = 0;
  for (int64_t micro = 0; micro < micro_batches_; ++micro) {
    for (int64_t s = 0; s < sequences_; ++s) {
      source.read_sample(first_sample + order_.sample_at(micro * sequences_ + s), sample_);
      for (const ContextPiece& piece : pieces_) {
        const auto from = sample_.begin() + piece.first_position;
        std::copy_n(from, piece.length, tokens_.begin() + at);
        std::copy_n(from + 1, piece.length, targets_.begin() + at);
        at += piece.length;
      }
    }
  }
}

MicroBatch BatchReader::micro_batch(int64_t micro) const {
  const int64_t first = micro * sequences_ * local_length_;
  return {tokens_.data() + first, targets_.data() + first};
}

}  // namespace tprimat
