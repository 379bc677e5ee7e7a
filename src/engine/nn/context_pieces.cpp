#include "nn/context_pieces.h"

#include "base/check.h"

namespace tprimat::engine {

std::vector<ContextPiece> context_pieces(int64_t sequence_length, int context_rank, int context_size) {
  if (context_size == 1) return {{0, 0, sequence_length}};
  const int64_t length = sequence_length / (2 * context_size);
  return {{context_rank * length, 0, length}, {(2 * context_size - 1 - context_rank) * length, length, length}};
}

std::vector<int64_t> local_positions(int64_t sequence_length, int context_rank, int context_size) {
  std::vector<int64_t> positions;
  for (const ContextPiece& piece : context_pieces(sequence_length, context_rank, context_size))
    for (int64_t t = 0; t < piece.length; ++t) positions.push_back(piece.first_position + t);
  return positions;
}

template <class T>
ContextExchange<T>::ContextExchange(const Plan& plan, const ContextBuffers& buffers, int64_t width)
    : sequences_(plan.batch.sequences),
      sequence_length_(plan.batch.sequence_length),
      local_length_(plan.batch.local_length),
      width_(width),
      context_size_(plan.sharing.context_size),
      buffers_(buffers) {
  CHECK(context_size_ == 1 || buffers.by_rank.count == sequences_ * sequence_length_ * width);
}

template <class T>
void ContextExchange<T>::reorder(const Pass<T>& pass, bool to_sequences, T* by_sequence) const {
  T* const by_rank = pass.at(buffers_.by_rank);
  for (int rank = 0; rank < context_size_; ++rank)
    for (const ContextPiece& piece : context_pieces(sequence_length_, rank, context_size_))
      for (int64_t s = 0; s < sequences_; ++s) {
        T* const ranked = by_rank + ((rank * sequences_ + s) * local_length_ + piece.first_local) * width_;
        T* const sequenced = by_sequence + (s * sequence_length_ + piece.first_position) * width_;
        const T* const from = to_sequences ? ranked : sequenced;
        pass.copy(piece.length * width_, from, to_sequences ? sequenced : ranked);
      }
}

template <class T>
T* ContextExchange<T>::gather(const Pass<T>& pass, const T* own, int64_t row_stride) const {
  const OpTimer timer(pass.clock, "context-parallel exchange", {});
  T* const packed = pass.at(buffers_.packed);
  const int64_t rows = sequences_ * local_length_;
  pass.copy_rows(rows, width_, {own, row_stride}, {packed, width_});
  pass.ranks.context->all_gather(packed, rows * width_, pass.at(buffers_.by_rank));
  reorder(pass, true, pass.at(buffers_.by_sequence));
  return pass.at(buffers_.by_sequence);
}

template <class T>
T* ContextExchange<T>::gradient(const Pass<T>& pass) const {
  pass.clear(buffers_.gradient.count, pass.at(buffers_.gradient));
  return pass.at(buffers_.gradient);
}

template <class T>
void ContextExchange<T>::scatter_gradient(const Pass<T>& pass, T* own, int64_t row_stride) const {
  const OpTimer timer(pass.clock, "context-parallel exchange", {});
  reorder(pass, false, pass.at(buffers_.gradient));
  T* const packed = pass.at(buffers_.packed);
  const int64_t rows = sequences_ * local_length_;
  pass.ranks.context->reduce_scatter(pass.at(buffers_.by_rank), rows * width_, packed);
  pass.copy_rows(rows, width_, {packed, width_}, {own, row_stride});
}

template class ContextExchange<float>;
template class ContextExchange<bf16>;
template class ContextExchange<f16>;
template class ContextExchange<double>;

}  // namespace tprimat::engine
