#pragma once

#include <mpi.h>

#include <memory>

#include "comm/messages/message_communicator.h"

namespace tprimat::engine {

// A group of ranks over MPI.
class MpiCommunicator : public MessageCommunicator {
 public:
  explicit MpiCommunicator(MPI_Comm comm);  // takes it over
  ~MpiCommunicator() override;
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  void barrier() override;
  std::unique_ptr<Communicator> split(int color, int key) override;

 protected:
  void release();

 private:
  MPI_Comm comm_;
};

}  // namespace tprimat::engine
