#include "comm/messages/reduce_work.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "comm/messages/reduce.h"

namespace tprimat::engine {
namespace {

constexpr int64_t k_small_bytes = 8 << 10;      // below, everybody sends everything: one hop rather than two
constexpr int64_t k_scratch_bytes = 2 << 20;    // of others' pieces, for all ranks and both rounds in flight
constexpr int64_t k_smallest_piece = 32 << 10;  // bytes
constexpr int64_t k_piece_unit = 64;            // elements

// Every rank sends all its values to all and adds up all of them.
class SmallReduceWork : public MessageWork {
 public:
  SmallReduceWork(MessageGroup& group, const Reduce& reduce)
      : rank_(group.rank()),
        reduce_(reduce),
        others_(std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(group.size() * reduce.values.size()))),
        messages_(group.make_messages()) {
    const int tag = group.next_tag();
    const int64_t size = reduce.values.size();
    for (int rank = 0; rank < group.size(); ++rank) {
      std::byte* const theirs = others_.get() + rank * size;
      sources_.push_back(rank == rank_ ? bytes_of(reduce.values) : theirs);
      if (rank == rank_) continue;
      messages_->post_receive(theirs, size, rank, tag);
      messages_->post_send(bytes_of(reduce.values), size, rank, tag);
    }
  }

  bool advance() override {
    if (!messages_->are_done()) return false;
    const CommBuffer& values = reduce_.values;
    reduce_in_order(sources_, bytes_of(values), values.count, values.type, reduce_.reduction);
    return true;
  }

 private:
  int rank_;
  Reduce reduce_;
  std::unique_ptr<std::byte[]> others_;
  std::vector<const std::byte*> sources_;
  std::unique_ptr<Messages> messages_;
};

struct Piece {
  int64_t begin = 0, count = 0;  // elements from the start of the values
};

class BlockReduceWork : public MessageWork {
 public:
  BlockReduceWork(MessageGroup& group, const Reduce& reduce)
      : group_(group),
        reduce_(reduce),
        width_(element_bytes(reduce.values.type)),
        tag_(group.next_tag()),
        exchange_{group.make_messages(), group.make_messages()},
        gather_(group.make_messages()) {
    const int64_t size = group.size();
    block_ = reduce.own ? reduce.own->count : (reduce.values.count + size - 1) / size;
    const int64_t bytes = std::max(k_smallest_piece, k_scratch_bytes / (2 * std::max<int64_t>(size - 1, 1)));
    piece_ = std::max(bytes / width_ / k_piece_unit, int64_t{1}) * k_piece_unit;
    piece_ = std::min(piece_, std::max<int64_t>(block_, 1));
    rounds_ = (block_ + piece_ - 1) / piece_;
    scratch_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(2 * size * piece_ * width_));
    if (rounds_ > 0) post_exchange(0);
  }

  bool advance() override {
    while (round_ < rounds_) {
      if (!exchange_[static_cast<size_t>(round_ % 2)]->are_done()) return false;
      if (round_ + 1 < rounds_) post_exchange(round_ + 1);
      reduce_own_piece(round_);
      if (!reduce_.own) post_gather(round_);
      ++round_;
    }
    return gather_->are_done();
  }

 private:
  // Of the block of `rank`; empty at the end of a short last block.
  Piece piece_of(int rank, int64_t round) const {
    const int64_t begin = rank * block_ + round * piece_;
    const int64_t end = std::min({begin + piece_, (rank + 1) * block_, reduce_.values.count});
    return {begin, std::max<int64_t>(end - begin, 0)};
  }
  std::byte* at(const Piece& piece) const { return bytes_of(reduce_.values) + piece.begin * width_; }
  std::byte* scratch(int rank, int64_t round) const {
    return scratch_.get() + (round % 2 * group_.size() + rank) * piece_ * width_;
  }

  template <class Visit>
  void for_each_other(Visit&& visit) const {
    for (int step = 1; step < group_.size(); ++step) visit((group_.rank() + step) % group_.size());
  }

  void post_exchange(int64_t round) {
    Messages& messages = *exchange_[static_cast<size_t>(round % 2)];
    const Piece own = piece_of(group_.rank(), round);
    for_each_other([&](int rank) {
      const Piece theirs = piece_of(rank, round);
      if (own.count > 0) messages.post_receive(scratch(rank, round), own.count * width_, rank, tag_);
      if (theirs.count > 0) messages.post_send(at(theirs), theirs.count * width_, rank, tag_);
    });
  }

  void reduce_own_piece(int64_t round) {
    const Piece own = piece_of(group_.rank(), round);
    if (own.count == 0) return;
    std::vector<const std::byte*> sources;
    for (int rank = 0; rank < group_.size(); ++rank)
      sources.push_back(rank == group_.rank() ? at(own) : scratch(rank, round));
    std::byte* const to = reduce_.own ? bytes_of(*reduce_.own) + round * piece_ * width_ : at(own);
    reduce_in_order(sources, to, own.count, reduce_.values.type, reduce_.reduction);
  }

  // What was there has been sent: the exchange of this round is over.
  void post_gather(int64_t round) {
    const Piece own = piece_of(group_.rank(), round);
    for_each_other([&](int rank) {
      const Piece theirs = piece_of(rank, round);
      if (theirs.count > 0) gather_->post_receive(at(theirs), theirs.count * width_, rank, tag_ + 1);
      if (own.count > 0) gather_->post_send(at(own), own.count * width_, rank, tag_ + 1);
    });
  }

  MessageGroup& group_;
  Reduce reduce_;
  int64_t width_;  // bytes of an element
  int tag_;
  int64_t block_ = 0, piece_ = 0;         // elements
  int64_t rounds_ = 0, round_ = 0;        // a round is one piece of every block
  std::unique_ptr<std::byte[]> scratch_;  // [round % 2][rank][piece_]
  std::array<std::unique_ptr<Messages>, 2> exchange_;
  std::unique_ptr<Messages> gather_;
};

}  // namespace

std::unique_ptr<MessageWork> make_reduce_work(MessageGroup& group, const Reduce& reduce) {
  CHECK(!reduce.own ||
        (reduce.own->type == reduce.values.type && reduce.own->count * group.size() == reduce.values.count));
  if (!reduce.own && reduce.values.size() <= k_small_bytes) return std::make_unique<SmallReduceWork>(group, reduce);
  return std::make_unique<BlockReduceWork>(group, reduce);
}

}  // namespace tprimat::engine
