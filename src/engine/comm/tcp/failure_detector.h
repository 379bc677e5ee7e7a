#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/tcp/socket.h"

namespace tprimat::engine {

// Notices in a thread of its own that a rank has gone, also while this one computes or waits for a GPU: each rank has a
// connection to rank 0, which tells all others. A rank that is done says so before it goes.
class FailureDetector {
 public:
  // on_loss(sentence), in that thread, when this rank still goes on some time after another one was lost.
  using OnLoss = std::function<void(const std::string& sentence)>;
  // sockets: of rank 0 to each rank (its own is closed), of the others to rank 0.
  FailureDetector(std::vector<Socket> sockets, OnLoss on_loss, double patience_seconds = 20);
  ~FailureDetector() { leave(true); }
  FailureDetector(const FailureDetector&) = delete;
  FailureDetector& operator=(const FailureDetector&) = delete;

  // The last word: this rank is done, or has failed.
  void leave(bool failed);

 private:
  void watch();
  int read_message(int rank);  // the rank that was lost; -1: none
  void tell_others(int message);

  std::vector<Socket> sockets_;  // of the ranks that have not left
  OnLoss on_loss_;
  double patience_;
  Socket stop_;  // an eventfd, which wakes the thread up
  std::thread thread_;
};

}  // namespace tprimat::engine
