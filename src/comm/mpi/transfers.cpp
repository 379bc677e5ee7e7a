#include "comm/mpi/transfers.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace tprimat {
namespace {

constexpr int64_t k_longest_message = int64_t{1} << 30;  // MPI counts in int
constexpr int k_polls_before_yield = 32;                 // ranks may share a processor

class WorkTransfer;

std::vector<WorkTransfer*>& transfers_under_way() {
  static std::vector<WorkTransfer*> transfers;
  return transfers;
}

class WorkTransfer : public Transfer {
 public:
  explicit WorkTransfer(std::unique_ptr<MpiWork> work) : work_(std::move(work)) {
    transfers_under_way().push_back(this);
    move_on();
  }

  // While an exception is on its way the other ranks may never send: the work is left to MPI, whose end is near.
  ~WorkTransfer() override {
    if (std::uncaught_exceptions() > exceptions_) {
      work_.release();
      leave();
    } else {
      wait_for_end();
    }
  }

  void wait() override { wait_for_end(); }

  void move_on() {
    if (!work_ || !work_->advance()) return;
    work_.reset();
    leave();
  }

 private:
  void wait_for_end() {
    for (int polls = 0; work_; ++polls) {
      move_transfers_on();
      if (work_ && polls >= k_polls_before_yield) ::sched_yield();
    }
  }
  void leave() { std::erase(transfers_under_way(), this); }

  std::unique_ptr<MpiWork> work_;  // nothing once it is done
  int exceptions_ = std::uncaught_exceptions();
};

class RequestWork : public MpiWork {
 public:
  explicit RequestWork(MpiRequests requests) : requests_(std::move(requests)) {}
  bool advance() override { return requests_.are_done(); }

 private:
  MpiRequests requests_;
};

// Calls post(offset, bytes) for pieces that MPI can count; once for an empty message.
template <class Post>
void cut_message(int64_t bytes, Post&& post) {
  int64_t offset = 0;
  do {
    const int64_t piece = std::min(bytes - offset, k_longest_message);
    post(offset, static_cast<int>(piece));
    offset += piece;
  } while (offset < bytes);
}

}  // namespace

void MpiRequests::post_send(const MpiGroup& group, const std::byte* data, int64_t bytes, int to, int tag) {
  cut_message(bytes, [&](int64_t offset, int piece) {
    MPI_Isend(data + offset, piece, MPI_BYTE, to, tag, group.comm, &requests_.emplace_back(MPI_REQUEST_NULL));
  });
}

void MpiRequests::post_receive(const MpiGroup& group, std::byte* data, int64_t bytes, int from, int tag) {
  cut_message(bytes, [&](int64_t offset, int piece) {
    MPI_Irecv(data + offset, piece, MPI_BYTE, from, tag, group.comm, &requests_.emplace_back(MPI_REQUEST_NULL));
  });
}

bool MpiRequests::are_done() {
  if (requests_.empty()) return true;
  int done = 0;
  MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
  if (done != 0) requests_.clear();
  return done != 0;
}

TransferPtr start_work(std::unique_ptr<MpiWork> work) { return std::make_unique<WorkTransfer>(std::move(work)); }

// Backwards, because those that are done leave the list.
void move_transfers_on() {
  auto& transfers = transfers_under_way();
  for (size_t i = transfers.size(); i-- > 0;) transfers[i]->move_on();
}

bool are_transfers_under_way() { return !transfers_under_way().empty(); }

TransferPtr start_requests(MpiRequests requests) {
  return start_work(std::make_unique<RequestWork>(std::move(requests)));
}

}  // namespace tprimat
