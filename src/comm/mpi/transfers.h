#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace tprimat {

inline std::byte* bytes_of(const CommBuffer& buffer) { return static_cast<std::byte*>(buffer.data); }

// Messages of one group of ranks. Everything travels as point-to-point messages of bytes, because only those can be
// started in any order: MPI's own non-blocking collectives must be started in the same order everywhere, which the
// second halves of several all-reduces under way cannot promise.
struct MpiGroup {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 1;
  int64_t collectives = 0;  // started so far

  // Two tags for each collective, above those of point-to-point transfers. Numbers come again after a million
  // collectives; messages with the same tag stay in order.
  int next_tag() { return k_first_tag + static_cast<int>(2 * (collectives++ % 1'000'000)); }
  static constexpr int k_first_tag = 1 << 15;
};

// Requests that MPI works on.
class MpiRequests {
 public:
  void post_send(const MpiGroup& group, const std::byte* data, int64_t bytes, int to, int tag);
  void post_receive(const MpiGroup& group, std::byte* data, int64_t bytes, int from, int tag);
  void add(MPI_Request request) { requests_.push_back(request); }
  bool are_done();  // lets MPI work; once true it stays true until something is added

 private:
  std::vector<MPI_Request> requests_;
};

// One transfer's work: several phases of requests with computation between them.
class MpiWork {
 public:
  virtual ~MpiWork() = default;
  virtual bool advance() = 0;  // as far as it goes without waiting; true when all is done
};

// Makes the work a transfer: it is moved on whenever this process waits for any transfer or calls move_transfers_on().
TransferPtr start_work(std::unique_ptr<MpiWork> work);
void move_transfers_on();
bool are_transfers_under_way();

// Work that is done when the requests are.
TransferPtr start_requests(MpiRequests requests);

}  // namespace tprimat
