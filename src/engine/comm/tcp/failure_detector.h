#pragma once

#include <array>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/tcp/rendezvous_messages.h"
#include "comm/tcp/socket.h"

namespace tprimat::engine {

// Notices in a thread of its own that a rank has gone, also while this one computes or waits for a GPU: each rank has a
// connection to rank 0, which tells all others. A rank that is done says so before it goes.
class FailureDetector {
 public:
  // on_loss(sentence), in that thread, when this rank still goes on some time after another one was lost.
  using OnLoss = std::function<void(const std::string& sentence)>;
  FailureDetector(std::vector<Socket> sockets, OnLoss on_loss, double patience_seconds = 20);
  ~FailureDetector();
  FailureDetector(const FailureDetector&) = delete;
  FailureDetector& operator=(const FailureDetector&) = delete;

  // The last word: this rank is done, or has failed.
  void leave(bool failed);

 private:
  struct Line {
    Socket socket;
    int rank = 0;  // of the other side
    std::array<std::byte, k_message_bytes> bytes{};
    size_t count = 0;
  };
  void watch();
  bool wait_for_event(int milliseconds);  // false: this rank leaves
  int look_at(Line& line);                // the rank that was lost; -1: none
  void tell_others(int lost);

  std::vector<Line> lines_;
  OnLoss on_loss_;
  double patience_;
  Socket stop_;  // an eventfd, which wakes the thread up
  std::thread thread_;
};

}  // namespace tprimat::engine
