#include "comm/tcp/tcp_mesh.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace tprimat::engine {
namespace {

constexpr double k_goodbye_seconds = 10;

}  // namespace

TcpMesh::TcpMesh(ConnectedRanks met, FailureDetector::OnLoss on_loss)
    : rank_(met.rank), exceptions_(std::uncaught_exceptions()) {
  for (size_t rank = 0; rank < met.peers.size(); ++rank)
    links_.emplace_back(std::move(met.peers[rank]), static_cast<int>(rank));
  polled_.resize(links_.size());
  failure_detector_.emplace(std::move(met.controls), std::move(on_loss));
}

TcpMesh::~TcpMesh() { leave(std::uncaught_exceptions() > exceptions_ || !failure_.empty()); }

void TcpMesh::leave(bool failed) {
  if (!failure_detector_) return;
  if (!failed) send_what_is_left();
  failure_detector_->leave(failed);
  failure_detector_.reset();
  links_.clear();
}

// Goodbyes fit into what a socket keeps, so this ends at once unless a machine is gone.
void TcpMesh::send_what_is_left() {
  for (PeerLink& link : links_) {
    link.say_goodbye();
    link.write();
  }
  const Deadline deadline = deadline_in(k_goodbye_seconds);
  const auto has_more = [&] {
    return std::any_of(links_.begin(), links_.end(), [](const PeerLink& link) { return link.has_to_write(); });
  };
  while (has_more() && SteadyClock::now() < deadline) {
    for (size_t rank = 0; rank < links_.size(); ++rank)
      polled_[rank] = {links_[rank].has_to_write() ? links_[rank].descriptor() : -1, POLLOUT, 0};
    ::poll(polled_.data(), polled_.size(), 100);
    for (PeerLink& link : links_) link.write();
  }
}

void TcpMesh::check_sound() const {
  if (!failure_.empty()) throw Error(Problem{failure_, "", ""}, ExitStatus::work_failed);
}

template <class Work>
void TcpMesh::guarded(const Work& work) {
  check_sound();
  try {
    work();
  } catch (const Error& error) {
    failure_ = error.what();
    throw;
  }
}

void TcpMesh::post_send(int to, MessageKey key, const std::byte* data, int64_t bytes, OpenMessages open) {
  guarded([&] { links_[static_cast<size_t>(to)].post_send(key, data, bytes, std::move(open)); });
}

void TcpMesh::post_receive(int from, MessageKey key, std::byte* data, int64_t bytes, OpenMessages open) {
  guarded([&] { links_[static_cast<size_t>(from)].post_receive(key, data, bytes, std::move(open)); });
}

void TcpMesh::exchange_within(int milliseconds) {
  guarded([&] {
    bool is_anybody_there = false;
    for (size_t rank = 0; rank < links_.size(); ++rank) {
      const PeerLink& link = links_[rank];
      polled_[rank] = {link.descriptor(), static_cast<short>(link.has_to_write() ? POLLIN | POLLOUT : POLLIN), 0};
      is_anybody_there |= link.is_connected();
    }
    CHECK(is_anybody_there || milliseconds == 0);  // what a rank sends to itself is there, or nobody sends it
    if (::poll(polled_.data(), polled_.size(), milliseconds) <= 0) return;
    for (size_t rank = 0; rank < links_.size(); ++rank) {
      if ((polled_[rank].revents & POLLOUT) != 0) links_[rank].write();
      if ((polled_[rank].revents & ~POLLOUT) != 0) links_[rank].read();
    }
  });
}

// The caller's memory is about to go.
void TcpMesh::abandon(std::unique_ptr<MessageWork> work) {
  if (failure_.empty()) failure_ = "this rank abandoned an exchange with its peers";
  for (PeerLink& link : links_) link.drop_messages();
  work.reset();
}

}  // namespace tprimat::engine
