#pragma once

#include <mpi.h>

#include <memory>

#include "comm/communicator.h"
#include "comm/mpi/transfers.h"

namespace tprimat {

// A group of ranks over MPI.
class MpiCommunicator : public Communicator {
 public:
  explicit MpiCommunicator(MPI_Comm comm);  // takes it over
  ~MpiCommunicator() override;
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  int rank() const override { return group_.rank; }
  int size() const override { return group_.size; }
  TransferPtr start_all_reduce(CommBuffer values, Reduction reduction) override;
  TransferPtr start_all_gather(CommBuffer own, CommBuffer all) override;
  TransferPtr start_reduce_scatter(CommBuffer all, CommBuffer own) override;
  TransferPtr start_send(CommBuffer values, int to, int tag) override;
  TransferPtr start_receive(CommBuffer values, int from, int tag) override;
  void broadcast(CommBuffer values, int root) override;
  void barrier() override;
  void progress() override { move_transfers_on(); }
  std::unique_ptr<Communicator> split(int color, int key) override;

 protected:
  void release();

 private:
  MpiGroup group_;
};

}  // namespace tprimat
