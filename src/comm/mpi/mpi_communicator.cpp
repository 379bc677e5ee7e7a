#include "comm/mpi/mpi_communicator.h"

#include <cstring>
#include <exception>
#include <utility>

#include "base/check.h"
#include "comm/mpi/reduce_work.h"

namespace tprimat {
namespace {

bool is_sendable(const CommBuffer& values, int peer, int tag, const MpiGroup& group) {
  return peer >= 0 && peer < group.size && tag >= 0 && tag < MpiGroup::k_first_tag && values.count >= 0;
}

}  // namespace

MpiCommunicator::MpiCommunicator(MPI_Comm comm) {
  group_.comm = comm;
  MPI_Comm_rank(comm, &group_.rank);
  MPI_Comm_size(comm, &group_.size);
}

MpiCommunicator::~MpiCommunicator() { release(); }

void MpiCommunicator::release() {
  int ended = 0;
  MPI_Finalized(&ended);
  if (ended != 0 || group_.comm == MPI_COMM_NULL || std::uncaught_exceptions() > 0) return;
  MPI_Comm_free(&group_.comm);
}

TransferPtr MpiCommunicator::start_all_reduce(CommBuffer values, Reduction reduction) {
  return start_work(make_reduce_work(group_, {values, reduction, std::nullopt}));
}

TransferPtr MpiCommunicator::start_reduce_scatter(CommBuffer all, CommBuffer own) {
  return start_work(make_reduce_work(group_, {all, Reduction::sum, own}));
}

TransferPtr MpiCommunicator::start_all_gather(CommBuffer own, CommBuffer all) {
  CHECK(own.type == all.type && own.count * group_.size == all.count);
  const int tag = group_.next_tag();
  const int64_t size = own.size();
  std::byte* const place = bytes_of(all) + group_.rank * size;
  if (place != own.data && size > 0) std::memcpy(place, own.data, static_cast<size_t>(size));
  MpiRequests requests;
  for (int step = 1; step < group_.size && size > 0; ++step) {
    const int rank = (group_.rank + step) % group_.size;
    requests.post_receive(group_, bytes_of(all) + rank * size, size, rank, tag);
    requests.post_send(group_, place, size, rank, tag);
  }
  return start_requests(std::move(requests));
}

TransferPtr MpiCommunicator::start_send(CommBuffer values, int to, int tag) {
  CHECK(is_sendable(values, to, tag, group_));
  MpiRequests requests;
  requests.post_send(group_, bytes_of(values), values.size(), to, tag);
  return start_requests(std::move(requests));
}

TransferPtr MpiCommunicator::start_receive(CommBuffer values, int from, int tag) {
  CHECK(is_sendable(values, from, tag, group_));
  MpiRequests requests;
  requests.post_receive(group_, bytes_of(values), values.size(), from, tag);
  return start_requests(std::move(requests));
}

// A chain of halves (binomial tree): rank v = (rank − root) mod R receives from v without its lowest set bit.
void MpiCommunicator::broadcast(CommBuffer values, int root) {
  CHECK(root >= 0 && root < group_.size);
  const int tag = group_.next_tag();
  const int place = (group_.rank - root + group_.size) % group_.size;
  const auto rank_of = [&](int other) { return (other + root) % group_.size; };
  int bit = 1;
  for (; bit < group_.size; bit <<= 1) {
    if ((place & bit) == 0) continue;
    MpiRequests from_parent;
    from_parent.post_receive(group_, bytes_of(values), values.size(), rank_of(place - bit), tag);
    start_requests(std::move(from_parent))->wait();
    break;
  }
  MpiRequests to_children;
  while (bit >>= 1)
    if (place + bit < group_.size)
      to_children.post_send(group_, bytes_of(values), values.size(), rank_of(place + bit), tag);
  start_requests(std::move(to_children))->wait();
}

void MpiCommunicator::barrier() {
  MpiRequests requests;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(group_.comm, &request);
  requests.add(request);
  start_requests(std::move(requests))->wait();
}

std::unique_ptr<Communicator> MpiCommunicator::split(int color, int key) {
  CHECK(!are_transfers_under_way());
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(group_.comm, color, key, &part);
  auto communicator = std::make_unique<MpiCommunicator>(part);
  if (communicator->size() == 1) return make_self_communicator();
  return communicator;
}

}  // namespace tprimat
