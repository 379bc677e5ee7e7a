#include "comm/mpi/mpi_communicator.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "base/check.h"

namespace tprimat::engine {
namespace {

constexpr int64_t k_longest_message = int64_t{1} << 30;  // MPI counts in int
constexpr int k_polls_before_yield = 32;                 // ranks may share a processor

class MpiTraffic : public Traffic {
 private:
  void exchange() override {}  // MPI works whenever it is asked what is done
  void pause(int calls) override {
    if (calls >= k_polls_before_yield) ::sched_yield();
  }
  void abandon(std::unique_ptr<MessageWork> work) override { work.release(); }  // to MPI, whose end is near
};

MpiTraffic& mpi_traffic() {
  static MpiTraffic traffic;
  return traffic;
}

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

class MpiMessages : public Messages {
 public:
  explicit MpiMessages(MPI_Comm comm) : comm_(comm) {}

  void post_send(const std::byte* data, int64_t bytes, int to, int tag) override {
    cut_message(bytes, [&](int64_t offset, int piece) {
      MPI_Isend(data + offset, piece, MPI_BYTE, to, tag, comm_, &requests_.emplace_back(MPI_REQUEST_NULL));
    });
  }
  void post_receive(std::byte* data, int64_t bytes, int from, int tag) override {
    cut_message(bytes, [&](int64_t offset, int piece) {
      MPI_Irecv(data + offset, piece, MPI_BYTE, from, tag, comm_, &requests_.emplace_back(MPI_REQUEST_NULL));
    });
  }
  void add(MPI_Request request) { requests_.push_back(request); }
  bool are_done() override {
    if (requests_.empty()) return true;
    int done = 0;
    MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
    if (done != 0) requests_.clear();
    return done != 0;
  }

 private:
  MPI_Comm comm_;
  std::vector<MPI_Request> requests_;
};

class MpiGroup : public MessageGroup {
 public:
  MpiGroup(MPI_Comm comm, int rank, int size) : MessageGroup(rank, size), comm_(comm) {}
  std::unique_ptr<Messages> make_messages() override { return std::make_unique<MpiMessages>(comm_); }
  Traffic& traffic() override { return mpi_traffic(); }

 private:
  MPI_Comm comm_;
};

std::unique_ptr<MessageGroup> make_mpi_group(MPI_Comm comm) {
  int rank = 0, size = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  return std::make_unique<MpiGroup>(comm, rank, size);
}

}  // namespace

MpiCommunicator::MpiCommunicator(MPI_Comm comm) : MessageCommunicator(make_mpi_group(comm)), comm_(comm) {}

MpiCommunicator::~MpiCommunicator() { release(); }

void MpiCommunicator::release() {
  int ended = 0;
  MPI_Finalized(&ended);
  if (ended != 0 || comm_ == MPI_COMM_NULL || std::uncaught_exceptions() > 0) return;
  MPI_Comm_free(&comm_);
}

void MpiCommunicator::barrier() {
  auto messages = std::make_unique<MpiMessages>(comm_);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm_, &request);
  messages->add(request);
  start_messages(group(), std::move(messages))->wait();
}

std::unique_ptr<Communicator> MpiCommunicator::split(int color, int key) {
  CHECK(!mpi_traffic().is_under_way());
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(comm_, color, key, &part);
  auto communicator = std::make_unique<MpiCommunicator>(part);
  if (communicator->size() == 1) return make_self_communicator();
  return communicator;
}

}  // namespace tprimat::engine
