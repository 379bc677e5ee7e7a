#include "comm/tcp/tcp_communicator.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "comm/messages/message_communicator.h"
#include "comm/tcp/peer_link.h"

namespace tprimat::engine {
namespace {

// The connections of one rank to all others, for all groups that it belongs to. Work is done in the thread that waits;
// who waits sleeps until a connection stirs. Where a rank is lost, every later call throws Error.
class TcpMesh : public Traffic {
 public:
  TcpMesh(ConnectedRanks met, FailureDetector::OnLoss on_loss) : rank_(met.rank) {
    for (size_t rank = 0; rank < met.peers.size(); ++rank)
      links_.emplace_back(std::move(met.peers[rank]), static_cast<int>(rank));
    failure_detector_.emplace(std::move(met.controls), std::move(on_loss));
  }
  // Says goodbye; not where an exception is on its way or work was given up, which tells the others that it failed.
  ~TcpMesh() override { leave(std::uncaught_exceptions() > exceptions_ || !failure_.empty()); }

  void leave(bool failed) {
    if (!failure_detector_) return;
    if (!failed)
      for (PeerLink& link : links_) link.say_goodbye();
    failure_detector_->leave(failed);
    failure_detector_.reset();
    links_.clear();
  }

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(links_.size()); }

  // What work(link) throws is thrown again by all that follows.
  template <class Work>
  void with_link(int rank, const Work& work) {
    guarded([&] { work(links_[static_cast<size_t>(rank)]); });
  }

  // Numbers of groups: one for each that a rank belongs to.
  uint32_t next_context() const { return next_context_; }
  void use_context(uint32_t context) { next_context_ = context + 1; }

 private:
  void exchange() override { exchange_within(0); }
  void pause(int) override { exchange_within(-1); }

  // The caller's memory is about to go.
  void abandon(std::unique_ptr<MessageWork> work) override {
    if (failure_.empty()) failure_ = "this rank abandoned an exchange with its peers";
    for (PeerLink& link : links_) link.drop_messages();
    work.reset();
  }

  void exchange_within(int milliseconds) {
    guarded([&] {
      polled_.clear();
      for (const PeerLink& link : links_)
        polled_.push_back({link.descriptor(), static_cast<short>(link.has_to_write() ? POLLIN | POLLOUT : POLLIN), 0});
      // What a rank sends to itself is there, or nobody sends it.
      CHECK(milliseconds == 0 || std::ranges::any_of(links_, &PeerLink::is_connected));
      if (::poll(polled_.data(), polled_.size(), milliseconds) <= 0) return;
      for (size_t rank = 0; rank < links_.size(); ++rank) {
        if ((polled_[rank].revents & POLLOUT) != 0) links_[rank].write();
        if ((polled_[rank].revents & ~POLLOUT) != 0) links_[rank].read();
      }
    });
  }

  template <class Work>
  void guarded(const Work& work) {
    if (!failure_.empty()) throw Error(Problem{failure_, "", ""}, ExitStatus::work_failed);
    try {
      work();
    } catch (const Error& error) {
      failure_ = error.what();
      throw;
    }
  }

  int rank_;
  std::vector<PeerLink> links_;
  std::vector<pollfd> polled_;
  std::string failure_;  // nothing while all is well
  uint32_t next_context_ = 1;
  std::optional<FailureDetector> failure_detector_;
  int exceptions_ = std::uncaught_exceptions();
};

using MeshPtr = std::shared_ptr<TcpMesh>;

// A group of the mesh's ranks.
struct TcpMembers {
  MeshPtr mesh;
  std::vector<int> ranks;  // of the mesh, in the group's order; one of them is this one
  uint32_t context = 0;

  int own_place() const {
    const auto found = std::ranges::find(ranks, mesh->rank());
    CHECK(found != ranks.end());
    return static_cast<int>(found - ranks.begin());
  }
};

class TcpMessages : public Messages {
 public:
  explicit TcpMessages(const TcpMembers& members) : members_(members) {}
  void post_send(const std::byte* data, int64_t bytes, int to, int tag) override {
    members_.mesh->with_link(member(to), [&](PeerLink& link) { link.post_send(key(tag), data, bytes, open_); });
  }
  void post_receive(std::byte* data, int64_t bytes, int from, int tag) override {
    members_.mesh->with_link(member(from), [&](PeerLink& link) { link.post_receive(key(tag), data, bytes, open_); });
  }
  bool are_done() override { return *open_ == 0; }

 private:
  int member(int rank) const { return members_.ranks[static_cast<size_t>(rank)]; }
  MessageKey key(int tag) const { return {members_.context, static_cast<uint32_t>(tag)}; }

  const TcpMembers& members_;
  OpenMessages open_ = std::make_shared<int>(0);
};

class TcpGroup : public MessageGroup {
 public:
  explicit TcpGroup(TcpMembers members)
      : MessageGroup(members.own_place(), static_cast<int>(members.ranks.size())), members_(std::move(members)) {}
  std::unique_ptr<Messages> make_messages() override { return std::make_unique<TcpMessages>(members_); }
  Traffic& traffic() override { return *members_.mesh; }
  const TcpMembers& members() const { return members_; }

 private:
  TcpMembers members_;
};

// What a rank tells the others of a group that is split.
struct Wish {
  int64_t color = 0, key = 0, context = 0;  // context: the lowest number for the new group
};

class TcpCommunicator : public MessageCommunicator {
 public:
  explicit TcpCommunicator(TcpMembers members) : MessageCommunicator(std::make_unique<TcpGroup>(std::move(members))) {}

  // The number of the new groups is above that of every group to which any of the ranks belongs.
  std::unique_ptr<Communicator> split(int color, int key) override {
    CHECK(!group().traffic().is_under_way());
    const TcpMembers& all = static_cast<TcpGroup&>(group()).members();
    const Wish own{color, key, all.mesh->next_context()};
    std::vector<Wish> wishes(static_cast<size_t>(size()));
    all_gather(reinterpret_cast<const std::byte*>(&own), sizeof own, reinterpret_cast<std::byte*>(wishes.data()));
    const auto context = static_cast<uint32_t>(std::ranges::max(wishes, {}, &Wish::context).context);
    all.mesh->use_context(context);
    std::vector<std::pair<int64_t, int>> places;  // key and rank
    for (size_t rank = 0; rank < wishes.size(); ++rank)
      if (wishes[rank].color == color) places.emplace_back(wishes[rank].key, all.ranks[rank]);
    if (places.size() == 1) return make_self_communicator();
    std::ranges::stable_sort(places, {}, &std::pair<int64_t, int>::first);
    TcpMembers part{all.mesh, {}, context};
    for (const auto& place : places) part.ranks.push_back(place.second);
    return std::make_unique<TcpCommunicator>(std::move(part));
  }
};

std::weak_ptr<TcpMesh> running_mesh;

std::unique_ptr<Communicator> make_communicator(MeshPtr mesh) {
  TcpMembers all{std::move(mesh), {}, 0};
  for (int rank = 0; rank < all.mesh->size(); ++rank) all.ranks.push_back(rank);
  return std::make_unique<TcpCommunicator>(std::move(all));
}

// While the other threads wait or compute: nothing of theirs is ended in order.
[[noreturn]] void end_process(const std::string& sentence) {
  log_error(sentence);
  std::_Exit(static_cast<int>(ExitStatus::work_failed));
}

}  // namespace

std::unique_ptr<Communicator> make_tcp_communicator(ConnectedRanks met, FailureDetector::OnLoss on_loss) {
  return make_communicator(std::make_shared<TcpMesh>(std::move(met), std::move(on_loss)));
}

std::unique_ptr<Communicator> make_tcp_world(const RendezvousSettings& settings) {
  const auto mesh = std::make_shared<TcpMesh>(connect_ranks(settings), end_process);
  running_mesh = mesh;
  return make_communicator(mesh);
}

void abort_tcp(int status) {
  const MeshPtr mesh = running_mesh.lock();
  if (!mesh) return;
  mesh->leave(true);
  std::fflush(nullptr);
  std::_Exit(status);
}

}  // namespace tprimat::engine
