#pragma once

#include <poll.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/messages/traffic.h"
#include "comm/tcp/failure_detector.h"
#include "comm/tcp/peer_link.h"
#include "comm/tcp/rendezvous.h"

namespace tprimat::engine {

// The connections of one rank to all others, for all groups that it belongs to. Work is done in the thread that waits;
// who waits sleeps until a connection stirs. Where a rank is lost, every later call throws Error.
class TcpMesh : public Traffic {
 public:
  TcpMesh(ConnectedRanks met, FailureDetector::OnLoss on_loss);
  // Says goodbye; not where an exception is on its way or work was given up, which tells the others that it failed.
  ~TcpMesh() override;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(links_.size()); }
  void post_send(int to, MessageKey key, const std::byte* data, int64_t bytes, OpenMessages open);
  void post_receive(int from, MessageKey key, std::byte* data, int64_t bytes, OpenMessages open);

  // Numbers of groups: one for each that a rank belongs to.
  uint32_t next_context() const { return next_context_; }
  void use_context(uint32_t context) { next_context_ = context + 1; }

  void leave(bool failed);

 private:
  void exchange() override { exchange_within(0); }
  void pause(int) override { exchange_within(-1); }
  void abandon(std::unique_ptr<MessageWork> work) override;

  void exchange_within(int milliseconds);
  void check_sound() const;
  template <class Work>
  void guarded(const Work& work);  // what it throws is thrown again by all that follows
  void send_what_is_left();

  int rank_;
  std::vector<PeerLink> links_;
  std::vector<pollfd> polled_;
  std::string failure_;  // nothing while all is well
  uint32_t next_context_ = 1;
  std::optional<FailureDetector> failure_detector_;
  int exceptions_;
};

}  // namespace tprimat::engine
